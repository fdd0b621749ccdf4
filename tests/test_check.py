"""`.ci/run`: every step runs once whatever failed before it, and the end says what failed."""

from __future__ import annotations

import ast
import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from kit.quarantine import QUARANTINE

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("python", "ruff", "mypy", "lint-imports", "cmake", "ctest")


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def checked(tree: Path, *, failing: str = "") -> subprocess.CompletedProcess[str]:
    """`.ci/run` where every tool notes how it was called; the call `failing` fails."""
    note = f'call="$(basename "$0") $*"; echo "$call" >> {tree}/calls; [ "$call" != "{failing}" ]'
    (tree / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tree / ".ci/run")
    for tool in TOOLS:
        program(tree / ".venv/bin" / tool, note)
    for tool in ("make", "apt-get", "qemu-aarch64"):
        program(tree / "bin" / tool, note)
    path = f"{tree / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", tree / ".ci/run"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def calls(tree: Path) -> list[str]:
    return (tree / "calls").read_text().splitlines()


def test_a_change_passes_when_every_step_does(tmp_path: Path) -> None:
    run = checked(tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("everything passed\n")
    made = {*calls(tmp_path)}
    assert {"make test PROFILE=thorough", "make faults"} <= made
    assert {"ruff check .", "mypy ", "lint-imports "} <= made


@pytest.mark.parametrize(
    ("failing", "step"),
    [
        ("make test PROFILE=thorough", "make test"),
        ("ruff format --check .", "format"),
        ("cmake --build build/runtime-sanitize --target all tests", "C++"),
        ("make faults", "fault matrix"),
    ],
)
def test_what_fails_is_told_at_the_end_and_is_not_tried_again(
    failing: str, step: str, tmp_path: Path
) -> None:
    run = checked(tmp_path, failing=failing)
    assert run.returncode == 1
    assert f"\n== summary\nfailed: {step}" in run.stdout
    made = calls(tmp_path)
    assert made.count(failing) == 1
    assert made[-1].startswith("python -m pytest -m slow")


SELECTED = {
    "pyproject.toml": "-m '([^']+)'",
    "Makefile": "-m (faults) tests/faults\n",
    ".ci/run": '-m "([^"]+)"',
}
"""What says which tests are those of `make test`, of the fault matrix and of the long suites."""


def test_every_test_is_in_one_step() -> None:
    found = [re.findall(each, (ROOT / file).read_text()) for file, each in SELECTED.items()]
    assert [len(each) for each in found] == [1, 1, 1]
    for slow, faults in itertools.product((False, True), repeat=2):
        chosen = [eval(each, {"slow": slow, "faults": faults}) for (each,) in found]
        assert chosen.count(True) == 1, (slow, faults, found)


def test_a_quarantined_test_runs_and_its_failure_is_shown_and_not_fatal(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_luck="def test_dice():\n    raise OSError\ndef test_sure():\n    pass")
    pytester.makeconftest(
        "from kit.quarantine import set_apart\n"
        "def pytest_collection_modifyitems(items):\n"
        "    set_apart(items, {'test_luck.py::test_dice': 'its port may be taken'})\n"
    )
    result = pytester.runpytest_inprocess("-rx")
    result.assert_outcomes(xfailed=1, passed=1)
    result.stdout.fnmatch_lines(["XFAIL test_luck.py::test_dice - quarantine: its port may be *"])
    assert result.ret == 0


def test_what_is_quarantined_exists() -> None:
    for name in QUARANTINE:
        file, test = name.split("::")
        tree = ast.parse((ROOT / file).read_text())
        assert test in {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
