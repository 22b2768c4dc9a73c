"""The error a user can mend: a result file or a README that is not what was expected."""


class InputError(Exception):
    """Says which file and line, what was found, and what was expected."""
