"""The exception for errors that the user can fix."""


class UserError(Exception):
    """An error caused by invalid input; shown as one line without a traceback.

    The message says where and what is wrong, and how to fix it: `FILE:LINE: what is wrong; what to do`.
    """
