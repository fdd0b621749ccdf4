"""Golden texts: what was printed when a person last looked, kept next to the tests.

`golden(text)` compares with tests/golden/<test file>/<test>.txt; `--update-golden` writes it.
Digests in names of workloads stand there as DIGEST.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]

_DIGEST: Final = re.compile(r"(?<=_)[0-9a-f]{6}\b")
"""The end of a workload's name, which one more attribute of any operator changes everywhere."""


@dataclass(frozen=True, slots=True)
class Golden:
    """The golden texts of one test; one that has several gives each a name."""

    folder: Path
    test: str
    update: bool

    def __call__(self, text: str, name: str = "") -> None:
        file = self.folder / f"{'-'.join(filter(None, (self.test, name)))}.txt"
        text = _DIGEST.sub("DIGEST", text)
        wanted = text if text.endswith("\n") else text + "\n"
        if self.update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(wanted)
            return
        if not file.exists():
            pytest.fail(f"no golden text {file.relative_to(ROOT.parent)}; {self.command}")
        assert wanted == file.read_text(), f"differs; if that is right, {self.command}"

    @property
    def command(self) -> str:
        """What writes the texts of this test."""
        test = self.folder.relative_to(ROOT / "golden")
        return f"run `pytest tests/{test}.py --update-golden` and look at the difference"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden texts anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with the golden one of the test that asks."""
    file = request.path.resolve().relative_to(ROOT).with_suffix("")
    test = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    return Golden(ROOT / "golden" / file, test, request.config.getoption("--update-golden"))
