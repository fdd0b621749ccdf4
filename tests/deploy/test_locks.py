"""Lock files: whatever is installed has a version and hashes, and the versions fit the project."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .deployed import DEPLOY, ROOT

LOCKS = DEPLOY / "locks"
NEEDS: Final[dict[str, list[tuple[Path, tuple[str, ...]]]]] = {
    "build": [(ROOT, ("build-system",)), (DEPLOY / "device", ("build-system",))],
    "device": [(DEPLOY / "device", ("dependencies", "metrics"))],
    "driver": [(ROOT, ("dependencies", "cluster"))],
    "dev": [(ROOT, ("build-system", "dependencies", "dev"))],
}
"""Which of a project's lists of requirements each lock is for."""


@cache
def locked(name: str) -> dict[str, str]:
    """The versions of a lock, all of whose packages have hashes and nothing beside them."""
    text = (LOCKS / f"{name}.txt").read_text()
    rows = re.sub(r" *\\\n *", " ", re.sub(r"^#.*\n", "", text, flags=re.M)).splitlines()
    versions: dict[str, str] = {}
    for row in rows:
        found = re.fullmatch(r"(\S+)==(\S+)( ; [^#]*?)?((?: --hash=sha256:[0-9a-f]{64})+)", row)
        assert found, f"{name}: {row[:100]}"
        versions[canonicalize_name(found[1])] = found[2]
    return versions


def requirements(folder: Path, lists: tuple[str, ...]) -> list[Requirement]:
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    said: dict[str, list[str]] = {
        "build-system": project["build-system"]["requires"],
        "dependencies": project["project"]["dependencies"],
        **project["project"].get("optional-dependencies", {}),
    }
    return [Requirement(text) for each in lists for text in said[each]]


def constraints() -> dict[str, str]:
    lines = (LOCKS / "constraints.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


@pytest.mark.parametrize("name", NEEDS)
def test_a_lock_has_all_that_its_project_needs(name: str) -> None:
    needed = [each for folder, lists in NEEDS[name] for each in requirements(folder, lists)]
    versions = locked(name)
    unfit = [
        str(each)
        for each in needed
        if versions.get(canonicalize_name(each.name), "") not in each.specifier
    ]
    assert not unfit, "deploy/locks/lock.sh writes the locks anew"


def test_all_locks_have_the_same_versions_and_those_of_the_constraints() -> None:
    chosen = constraints()
    for name in NEEDS:
        for package, version in locked(name).items():
            assert chosen.setdefault(package, version) == version, f"{name}: {package}"


@pytest.mark.parametrize(
    "file", [ROOT / "Makefile", *sorted((DEPLOY / "images").glob("*.Dockerfile"))], ids=str
)
def test_nothing_is_installed_without_a_hash(file: Path) -> None:
    """What is built here is installed without its dependencies, which a lock has brought."""
    text = re.sub(r"\\\n", " ", file.read_text())
    installs = re.findall(r"pip\b[^&\n]* (?:install|wheel) [^&\n]*", text)
    assert installs
    for command in installs:
        if "--require-hashes -r deploy/locks/" not in command:
            assert "--no-deps" in command
            assert "--no-build-isolation" in command or "--no-index" in command
