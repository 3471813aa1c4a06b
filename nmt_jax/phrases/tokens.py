"""Words and punctuation of a line as tokens, and back.

A mark stands where a token touches its neighbour, so that a line can be restored: `man's.` is `man ￭'s ￭.`.
"""

from collections.abc import Sequence

import regex

MARK = "￭"
_WORD = r"[\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*"  # \w+ of `re`, with combining marks
_OTHER = r"[^\p{L}\p{N}_\s\x1c-\x1f]\p{M}*"  # [^\w\s] of `re`, with combining marks
_TOKEN = regex.compile(rf"['’]{_WORD}|{_WORD}(?:[-.,]{_WORD})*|{_OTHER}")


def split(line: str, lowercase: bool = False) -> list[str]:
    """Returns the tokens of a line: words, also with hyphens, and single other characters."""
    text = (line.lower() if lowercase else line).replace(MARK, " ")
    found = list(_TOKEN.finditer(text))
    tokens = [match.group() for match in found]
    for number in range(1, len(found)):
        if found[number - 1].end() == found[number].start():
            # The mark goes to the punctuation, so that a word is the same token everywhere.
            if not _is_word(found[number].group()):
                tokens[number] = MARK + tokens[number]
            else:
                tokens[number - 1] += MARK
    return tokens


def join(tokens: Sequence[str]) -> str:
    """Returns the text of tokens, without marks."""
    return " ".join(tokens).replace(f" {MARK}", "").replace(f"{MARK} ", "").replace(MARK, "")


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "_"
