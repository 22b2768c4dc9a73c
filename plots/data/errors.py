"""The error for a malformed result file or README."""


class InputError(Exception):
    """The message names file and line, what was found, and what was expected."""
