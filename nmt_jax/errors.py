"""The exception for errors that the user can fix, one line for each error, and suggestions for misspelled words."""

import difflib
import errno
import os
from collections.abc import Iterable

ADVICE = {
    errno.ENOSPC: "free some space, then run the same command again",
    errno.EDQUOT: "free some space, then run the same command again",
    errno.EACCES: "check the permissions",
    errno.EPERM: "check the permissions",
    errno.EROFS: "use another folder",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EBADF: "the stream is closed or cannot be used in this direction",
    errno.EMFILE: "raise the limit `ulimit -n`",
}
WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)  # libraries report these as text
DEVICE_ERRORS = ("JaxRuntimeError", "XlaRuntimeError")  # by name: JAX is not imported here
OUT_OF_MEMORY = (
    "lower what is computed at once, such as --beam_size, --num_samples, --chunk, or batch_tokens, d_model and "
    "max_length in the config"
)


class UserError(Exception):
    """An error caused by invalid input; shown as one line without a traceback.

    The message says where and what is wrong, and how to fix it: `FILE:LINE: what is wrong; what to do`.
    """


def explain(error: BaseException) -> str | None:
    """Returns one line for an error that a user can cause and fix; None for an error of the program itself."""
    text = one_line(str(error))
    if isinstance(error, UserError):
        # An error whose message is that of another exception, which may have none.
        return text if text and not text.endswith(":") else f"{text} {type(error.__cause__ or error).__name__}".strip()
    if isinstance(error, OSError):
        places = " -> ".join(os.fsdecode(name) for name in (error.filename, error.filename2) if _is_name(name))
        advice = ADVICE.get(error.errno or 0)
        reason = f"{error.strerror or text or type(error).__name__}{f'; {advice}' if advice else ''}"
        return one_line(f"{places}: {reason}" if places else reason)
    if isinstance(error, MemoryError) or (type(error).__name__ in DEVICE_ERRORS and "RESOURCE_EXHAUSTED" in text):
        return f"out of memory{f' ({text[:160]})' if text else ''}: {OUT_OF_MEMORY}"
    if isinstance(error, RecursionError):
        return f"an input file is nested too deeply ({text}); simplify it"
    if isinstance(error, UnicodeError):
        return f"text that is not valid Unicode: {text}; convert it to UTF-8"
    if isinstance(error, RuntimeError) and ("nable to initialize backend" in text or "nknown backend" in text):
        return f"{text[:240]}; JAX_PLATFORMS={os.environ.get('JAX_PLATFORMS', '')}: use cpu, or leave it unset"
    if isinstance(error, RuntimeError) and "home directory" in text:  # of pathlib.Path.expanduser
        return "a path begins with ~, but there is no home directory: set HOME, or write the whole path"
    if isinstance(error, ValueError) and "for environment 'JAX_" in text:
        return f"{text[:240]}; correct the variable, or unset it"
    if code := next((code for code in WRITING if os.strerror(code) in text), None):
        return f"{text[:480]}; {ADVICE.get(code, ADVICE[errno.ENOSPC])}"
    return None


def _is_name(name: object) -> bool:
    return isinstance(name, str | bytes)


def one_line(text: str) -> str:
    """Returns the text as one line; control characters are escaped, so that they cannot act on a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in " ".join(text.split()))


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Returns `; did you mean …?` with the most similar of `known`, or "" if none is similar."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {prefix}{near[0]}?" if near else ""
