r"""Words of others, where they meet a terminal or a page: nothing in them that it obeys.

Names, labels, reasons and logs of other users, of devices and of kernels may hold what moves the
cursor (`\x1b[2J`), turns the direction of reading (U+202E), begins a line of its own, or fills the
screen. Every command that shows them calls these.
"""

from __future__ import annotations

import dataclasses
import html
import re
from typing import Any, Final, TypeVar, cast

MOST_SHOWN: Final = 300
"""Characters of one name or reason; nobody reads on."""

_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")
_KEPT: Final = "\n\t\u202f"
"""The last one is the narrow space between the digits of a long number."""
_WITHOUT_KEPT: Final = str.maketrans("", "", _KEPT)

_T = TypeVar("_T")


def printable(words: str, most: int = MOST_SHOWN) -> str:
    r"""One line of at most so many characters; what is no printed sign is spelled: `\x1b`, `\n`."""
    cut = words if len(words) <= most else words[: most - 1] + "…"
    return cut if cut.isprintable() else "".join(map(_spelled, cut))


def printable_lines(text: str) -> str:
    """Any number of lines, as `printable`; colours, which do no harm, are left out."""
    plain = _COLOUR.sub("", text)
    if plain.translate(_WITHOUT_KEPT).isprintable():
        return plain
    return "".join(sign if sign in _KEPT else _spelled(sign) for sign in plain)


def printable_words(record: _T) -> _T:
    """A record all of whose words are `printable`, those in the records within it as well."""
    return cast("_T", _with_printable_words(record))


def page_text(text: str) -> str:
    """Text for HTML, where it is no markup either; it may have lines."""
    return html.escape(printable_lines(text))


def _spelled(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()


def _with_printable_words(value: Any) -> Any:
    if isinstance(value, str):
        # A member of an enumeration is a word of ours.
        return printable(value) if type(value) is str else value
    if isinstance(value, tuple):
        return tuple(map(_with_printable_words, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        words = {
            field.name: _with_printable_words(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.init
        }
        return dataclasses.replace(value, **words)
    return value
