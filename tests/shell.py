"""A reader of shell commands as documentation has them: words after quoting and expansion, without redirections.

It reads what pages use: comments, continued lines, quotes, pipes, lists, loops over words, subshells, substitutions,
here-documents, and variables that the same text assigns.
"""

import re
from typing import NamedTuple

SPACE = " \t"
ENDS = SPACE + "\n;&|()<>"  # of a word
REDIRECTION = re.compile(r"\d*(?:<<-?|>>|>&|<&|&>|[<>])(?!\()")
SUBSTITUTED = "SUBSTITUTED"  # the value of $(…), and the file of <(…)
OPENING = {"do", "then", "else", "if", "elif", "while", "until", "{", "!", "time"}  # a command may follow them
CLOSING = {"done", "fi", "}"}
SPLIT = "\0"  # between words of an expanded variable


class Command(NamedTuple):
    """The words of a simple command, and the comment on its last line."""

    words: list[str]
    comment: str = ""


def commands(text: str) -> list[Command]:
    """All commands of a text, those of substitutions and subshells before the ones around them."""
    reader = _Reader(text)
    reader.read()
    return reader.found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.variables: dict[str, str] = {}
        self.found: list[Command] = []
        self.here: list[str] = []  # delimiters of here-documents that begin after this line

    def read(self, end: str = "") -> None:
        """Read commands up to the character `end`, by default all of them."""
        words: list[str] = []
        comment = ""
        while self.at < len(self.text):
            character = self.text[self.at]
            if self.text.startswith("\\\n", self.at):
                self.at += 2
            elif character in SPACE:
                self.at += 1
            elif character == "#":
                comment = self._up_to("\n")
            elif self.text.startswith(("<(", ">("), self.at):
                self.at += 2
                self.read(")")
                words.append(SUBSTITUTED)
            elif redirection := REDIRECTION.match(self.text, self.at):
                self.at = redirection.end()
                self._skip_spaces()
                target = self._word()
                if "<<" in redirection[0]:
                    self.here += target
            elif character in "\n;&|()":
                self._end(words, comment)
                words, comment = [], ""
                self.at += 1
                if character == "(":
                    self.read(")")
                elif character == end:
                    return
                elif character == "\n":
                    self._skip_documents()
            else:
                words += self._word()
        self._end(words, comment)

    def _end(self, words: list[str], comment: str) -> None:
        """Keep a command, or the variables that it assigns."""
        while words and words[0] in OPENING:
            words = words[1:]
        assigned = 0
        while assigned < len(words) and re.match(r"\w+=", words[assigned]):
            assigned += 1
        if words[:1] == ["for"] and len(words) > 3:
            self.variables[words[1]] = words[3]
        elif assigned and assigned == len(words):
            self.variables |= dict(word.split("=", 1) for word in words)
        elif words[assigned:] and words[assigned] not in CLOSING:
            self.found.append(Command(words[assigned:], comment))

    def _word(self) -> list[str]:
        """Read a word; an expanded variable may make it none or several."""
        text, quoted = "", False
        while self.at < len(self.text) and (character := self.text[self.at]) not in ENDS:
            self.at += 1
            if character == "'":
                text, quoted = text + self._up_to("'"), True
                self.at += 1
            elif character == '"':
                text, quoted = text + self._double(), True
            elif character == "$":
                text += re.sub(r"\s+", SPLIT, self._expansion())
            elif character == "\\" and self.at < len(self.text):
                text += self.text[self.at].replace("\n", "")
                self.at += 1
            else:
                text += character
        return [word for word in text.split(SPLIT) if word or quoted]

    def _double(self) -> str:
        """Read the rest of a double-quoted text."""
        text = ""
        while self.at < len(self.text) and (character := self.text[self.at]) != '"':
            self.at += 1
            if character == "$":
                text += self._expansion()
            elif character == "\\" and self.text[self.at : self.at + 1] in ('"', "\\", "$", "`", "\n"):
                text += self.text[self.at].replace("\n", "")
                self.at += 1
            else:
                text += character
        self.at += 1
        return text

    def _expansion(self) -> str:
        """Read what follows a dollar, and return its value; a variable that is not assigned here stays as it is."""
        if self.text.startswith("(", self.at):
            self.at += 1
            self.read(")")
            return SUBSTITUTED
        name = re.compile(r"\{(\w+)\}|(\w+)").match(self.text, self.at)
        if not name:
            return "$"
        self.at = name.end()
        return self.variables.get(name[1] or name[2], f"${name[0]}")

    def _up_to(self, end: str) -> str:
        """Read the text before the next `end`."""
        start, found = self.at, self.text.find(end, self.at)
        self.at = found if found >= 0 else len(self.text)
        return self.text[start : self.at]

    def _skip_spaces(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1

    def _skip_documents(self) -> None:
        """Skip the here-documents of the line that has just ended."""
        for delimiter in self.here:
            while self.at < len(self.text):
                line = self._up_to("\n")
                self.at += 1
                if line.strip() == delimiter:
                    break
        self.here = []
