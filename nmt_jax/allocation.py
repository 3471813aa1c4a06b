"""Memory of the process: what XLA frees after one step it asks for again in the next."""

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # malloc.h of the GNU C library


def keep_freed_memory() -> bool:
    """Let the C library keep what is freed rather than give it back to the system -> whether it can.

    XLA's CPU client allocates the temporary memory of a program at every call. Beyond 32 MiB the GNU C library maps it
    anew each time, and the system clears every page: of a step of word vectors that is nearly half the time.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    return all([mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, 2**31 - 1), mallopt(M_TOP_PAD, 2**26)])
