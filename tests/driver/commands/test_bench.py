"""`tilefarm bench` where the benchmarks are, and where only the wheel is."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

import pytest

from driver import cli
from driver.commands.bench import BENCHMARKS


@pytest.fixture
def _wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """No room for benchmarks, as wheels are made without it."""
    found = importlib.util.find_spec

    def found_in_wheel(name: str, package: str | None = None) -> ModuleSpec | None:
        if name.startswith("driver.benchmarks."):
            raise ModuleNotFoundError("No module named 'driver.benchmarks'")
        return found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", found_in_wheel)


@pytest.mark.usefixtures("_wheel")
@pytest.mark.parametrize("words", [("zoo",), ("kernels", "--json"), ("farm", "--devices", "3")])
def test_a_wheel_says_where_benchmarks_are(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", *words]) == 2
    said = capsys.readouterr().err
    assert f"bench {words[0]} is not installed" in said
    assert "try: in a checkout of tilefarm: pip install --editable ." in said


@pytest.mark.usefixtures("_wheel")
def test_the_help_of_a_wheel_says_where_benchmarks_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    assert "a part of tilefarm's source tree, not of its wheel" in capsys.readouterr().out


@pytest.mark.usefixtures("_wheel")
def test_a_wheel_compares_nights(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "compare", "/no/such/a", "/no/such/b"]) == 2
    assert "is not installed" not in capsys.readouterr().err


def test_every_benchmark_is_in_its_room() -> None:
    for name, (module, _) in BENCHMARKS.items():
        assert importlib.util.find_spec(module), name
