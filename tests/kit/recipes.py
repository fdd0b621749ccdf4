"""Recipes: the sections of READMEs that show how to add something of one's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("proto", "driver", "compile_worker", "device_server", "tuner")
_HEADING: Final = re.compile(r"#+ An? (.+) of your own\n")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a section says, with its heading.

    Attributes:
        name: the README's folder and what is added, for example "tuner: proposer".
    """

    name: str
    text: str

    @property
    def code(self) -> tuple[str, str]:
        """The language of its only block, and what it says."""
        ((language, code),) = re.findall(r"^```(\w+)\n(.*?)^```$", self.text, re.DOTALL | re.M)
        return language, code

    def run(self, folder: Path) -> dict[str, Any]:
        """The names that its Python defines, run as a file, as scripts are read from theirs."""
        language, code = self.code
        assert language == "python"
        file = folder / "recipe.py"
        file.write_text(code)
        names: dict[str, Any] = {"__name__": "recipe"}
        exec(compile(code, str(file), "exec"), names)
        return names


def _recipes() -> Iterator[Recipe]:
    for package in PACKAGES:
        for readme in sorted((ROOT / package).rglob("README.md")):
            folder = readme.parent.relative_to(ROOT).as_posix()
            for section in re.split(r"^(?=#)", _without_code(readme.read_text()), flags=re.M):
                if heading := _HEADING.match(section):
                    yield Recipe(f"{folder}: {heading[1]}", section.replace(_COMMENT, "#").strip())


_COMMENT: Final = "\0"


def _without_code(text: str) -> str:
    """A text in which lines of code do not look like headings."""

    def hidden(block: re.Match[str]) -> str:
        return re.sub(r"^#", _COMMENT, block[0], flags=re.M)

    return re.sub(r"^```.*?^```$", hidden, text, flags=re.DOTALL | re.M)


RECIPES: Final = {recipe.name: recipe for recipe in _recipes()}
