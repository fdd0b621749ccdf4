"""JSON from files and texts that others may have written: whatever is wrong with it is told alike.

Besides what is no JSON at all, there are texts that a decoder chokes on: nested so deeply that its
recursion has no room, or without an end.
"""

from __future__ import annotations

import json
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
    with path.open("rb") as file:
        content = file.read(MOST_NBYTES + 1)
    if len(content) > MOST_NBYTES:
        raise ValueError(f"more than {MOST_NBYTES >> 20} MiB")
    return decoded(content)


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
