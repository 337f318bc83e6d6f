"""Texts as cells that a spreadsheet shows and never calculates."""

# What begins a formula in a spreadsheet, in a cell of its own or once white space is stripped.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def inert(text: str) -> str:
    """The text as a cell that is shown and never calculated: with a `'` before what would be a formula."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text


def cell(value: object) -> object:
    """A value as a cell of a CSV file. None is an empty cell, a number is itself."""
    return inert(value) if isinstance(value, str) else value
