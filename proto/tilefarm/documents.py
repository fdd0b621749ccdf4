"""JSON, TOML and texts that others may have written: whatever is wrong with them is told alike.

Besides what is no JSON at all, there are texts that a decoder chokes on: nested so deeply that its
recursion has no room, or without an end.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Final, NoReturn

MOST_NBYTES: Final = 64 << 20
"""No document of ours comes near it; a device or a pipe given by mistake has no end."""


def read_json(path: Path) -> Any:
    """What a file in UTF-8 holds.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not JSON, or larger than any document of ours.
    """
    return decoded(_content(path))


def read_toml(path: Path) -> dict[str, Any]:
    """What a file of TOML holds.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not TOML, or larger than any document of ours.
    """
    try:
        return tomllib.loads(read_text(path))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_text(path: Path) -> str:
    """A text in UTF-8, without the mark that some editors put before it.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such text, or larger than any document of ours.
    """
    try:
        return _content(path).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(MOST_NBYTES + 1)
    if len(content) > MOST_NBYTES:
        raise ValueError(f"more than {MOST_NBYTES >> 20} MiB")
    return content


def decoded(text: str | bytes) -> Any:
    """What a text says; NaN and the infinities are no numbers.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
