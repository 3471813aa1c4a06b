"""The one kind of error that is the user's to mend."""


class UserError(Exception):
    """Bad input; its text is the whole line the user reads: `FILE:LINE: what is wrong and what to do`."""
