"""Text of a user's, such as names of classes, where it must not break a line or mean something else."""

from __future__ import annotations

import json

_FORMULAS = "=+-@"  # what a spreadsheet computes begins with one of them


def on_a_line(text: str, among_others: bool = False) -> str:
    r"""A label as one line, or with `among_others` as a part of a line that spaces divide.

    As it is, wherever that is safe. Otherwise a JSON string, of which any JSON reader makes the label again: with line
    ends and other characters that are not printed, spaces around it, or quotes at its beginning; and what a spreadsheet
    would compute, whose first character is then written as a number.

    Examples
    --------
    >>> from parablock.cli.words import on_a_line
    >>> for label in ("iris", "-1", "a b", "a\nb", "=1+1"):
    ...     print(on_a_line(label))
    iris
    -1
    a b
    "a\nb"
    "\u003d1+1"
    >>> print(on_a_line("a b", among_others=True))
    "a b"
    """
    if len(text) > 1 and text[0] in _FORMULAS and not _is_number(text):
        return f'"\\u{ord(text[0]):04x}{json.dumps(text[1:])[1:]}'
    safe = text.isprintable() and text == text.strip() and text != "" and not text.startswith('"')
    return text if safe and not (among_others and " " in text) else json.dumps(text)


def printable(text: str) -> str:
    """For a message: characters that are not printed, such as those that steer a terminal, as they are escaped."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
