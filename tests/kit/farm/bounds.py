"""The table of bounds in device_server/BOUNDS.md, and the constants that it names."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).resolve().parents[3] / "device_server" / "BOUNDS.md"

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


def memory() -> dict[str, int]:
    """The most memory that each kind of server takes."""
    return {kind: int(Bound(kind, most, "", "", "").number) for kind, most, *_ in rows("Memory")}


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


_ROOMS: Final = (
    "device_server",
    "device_server/device",
    "device_server/tracker",
    "device_server/runner",
    "device_server/server",
    "proto/tilefarm/rpc",
    "proto/tilefarm/watch",
)
_EMPTY: Final = {
    "set",
    "dict",
    "list",
    "deque",
    "Counter",
    "OrderedDict",
    "bytearray",
    "SimpleQueue",
}
_BOUND: Final = re.compile(r"(MOST|LONGEST|AT_ONCE)(?!\w*_SECONDS$)\w*")


def modules() -> Iterator[tuple[str, ast.Module]]:
    """What servers consist of: names of modules and what they say."""
    root = TABLE.parents[1]
    for room in _ROOMS:
        for path in sorted((root / room).glob("*.py")):
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            yield name.removeprefix("proto."), ast.parse(path.read_text())


def named_bounds() -> set[str]:
    """The constants of these modules whose names say that they are bounds."""
    return {
        f"{name}.{line.target.id}"
        for name, module in modules()
        for line in module.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        if _BOUND.fullmatch(line.target.id)
    }


def growing() -> set[str]:
    """The collections of these modules that begin empty, as MODULE.CLASS.ATTRIBUTE."""
    return {
        f"{name}.{owner.name}.{attribute}"
        for name, module in modules()
        for owner in ast.walk(module)
        if isinstance(owner, ast.ClassDef)
        for attribute in _beginning_empty(owner)
    }


def _beginning_empty(owner: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(owner):
        if isinstance(node, ast.Assign):
            target: ast.expr = node.targets[0]
        elif isinstance(node, ast.AnnAssign):
            target = node.target
        else:
            continue
        if isinstance(target, ast.Attribute) and _is_empty(node.value):
            yield target.attr
        if isinstance(target, ast.Name) and _is_made_empty(node.value):
            yield target.id


def _is_empty(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict | ast.List):
        return not ast.unparse(value).strip("{}[]")
    return isinstance(value, ast.Call) and _name(value.func) in _EMPTY


def _is_made_empty(value: ast.expr | None) -> bool:
    """Whether a field of a dataclass is a collection that begins empty."""
    return isinstance(value, ast.Call) and any(
        word.arg == "default_factory" and _name(word.value) in _EMPTY for word in value.keywords
    )


def _name(value: ast.expr) -> str:
    return ast.unparse(value).rpartition(".")[2].partition("[")[0]
