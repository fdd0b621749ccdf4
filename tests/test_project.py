"""What the tree as a whole promises: one version, the same checks everywhere, few things on top."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest
import yaml
from tilefarm.rpc.version import PROTOCOL

ROOT: Final = Path(__file__).resolve().parent.parent
VERSION: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

PLACES: Final = {
    "deploy/**/*": r"tilefarm(?:-device)?:(\d+\.\d+\.\d+)|newTag: (\d+\.\d+\.\d+)",
    "device_server/vta/runtime/CMakeLists.txt": r"project\(.* VERSION (\d+\.\d+\.\d+)",
    ".github/CHANGELOG.md": r"\A# What changed\n(?:.*\n)*?## (\d+\.\d+\.\d+)",
}
"""Files that name the version as well, and where."""


@pytest.mark.parametrize("place", PLACES)
def test_there_is_one_version(place: str) -> None:
    files = [path for path in sorted(ROOT.glob(place)) if path.is_file()]
    named = [
        (path.relative_to(ROOT).as_posix(), version)
        for path in files
        for found in re.finditer(PLACES[place], path.read_text())
        for version in found.groups()
        if version
    ]
    assert named
    assert [(file, version) for file, version in named if version != VERSION] == []


def test_the_changelog_names_the_protocol() -> None:
    text = (ROOT / ".github/CHANGELOG.md").read_text()
    newest = text.split("\n## ")[1]
    assert f"Protocol {PROTOCOL}." in newest


def test_a_commit_is_checked_as_a_change_is() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    whole = re.findall(r'"\$BIN"/((?:ruff|mypy|lint-imports)\b.*)', (ROOT / ".ci/run").read_text())
    assert [hook["entry"].removeprefix(".venv/bin/") for hook in hooks] == whole


PATCHED: Final = {
    "tests/driver/tune/test_broken_threads.py: _pause_seconds",
    "tests/driver/tune/test_broken_threads.py: _return_again",
}
"""What tests still put in the place of something private: less, never more."""


def test_tests_patch_what_is_public() -> None:
    """That they read nothing else, ruff sees."""
    private = re.compile(r'(?:setattr|\bput)\((?:\s*[\w.]+, *"|\s*"[\w.]+\.)(_[A-Za-z]\w*)"')
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in private.findall(path.read_text())
        if not name.startswith("__") and name != "_exit"
    }
    assert found == PATCHED


def test_the_top_of_the_tree() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no checkout of git")
    top = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    folders = {"compile_worker", "deploy", "device_server", "driver", "proto", "tests", "tuner"}
    files = {"LICENSE", "Makefile", "README.md", "pyproject.toml"}
    assert {name for name in top if not name.startswith(".")} <= folders | files
