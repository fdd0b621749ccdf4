"""The table of bounds in device_server/BOUNDS.md, and the constants that it names."""

from __future__ import annotations

import dataclasses
import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).resolve().parents[2] / "device_server" / "BOUNDS.md"

_UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "h": 3600}
_NUMBER: Final = re.compile(r"([\d,.]+)(?: (KiB|MiB|GiB|h)\b)?")


@dataclass(frozen=True, slots=True)
class Bound:
    """A row: what is bounded, by how much, in which constant, what happens beyond, who hears."""

    what: str
    at_most: str
    constant: str
    beyond: str
    heard: str

    @property
    def number(self) -> float:
        """As the table says it."""
        found = _NUMBER.match(self.at_most)
        assert found is not None, f"{self.what}: no number in {self.at_most!r}"
        return float(found[1].replace(",", "")) * _UNITS.get(found[2], 1)


def rows(title: str) -> list[list[str]]:
    """The cells of the table under a title, without its head."""
    _, _, after = TABLE.read_text().partition(f"\n## {title}\n")
    lines = [line for line in after.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def bounds() -> list[Bound]:
    """All rows of the table of bounds."""
    return [Bound(*row) for row in rows("Bounds")]


def constant(name: str) -> Any:
    """The value of a constant by its dotted name; of a field of settings, its default."""
    words = name.strip("`").split(".")
    for length in range(len(words) - 1, 0, -1):
        try:
            value: Any = importlib.import_module(".".join(words[:length]))
        except ModuleNotFoundError:
            continue
        for word in words[length:]:
            if dataclasses.is_dataclass(value):
                (field,) = (f for f in dataclasses.fields(value) if f.name == word)
                value = field.default
            else:
                value = getattr(value, word)
        return value
    raise ModuleNotFoundError(name)
