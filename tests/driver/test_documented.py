"""What READMEs and `--help` name exists: commands, every option that they are given, and files."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tilefarm.errors import SettingsError

from driver.cli import parser
from driver.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ROOT / each
    for each in ("proto", "driver", "compile_worker", "device_server", "tuner", "deploy")
]
READMES = [ROOT / "README.md", *sorted(r for each in PACKAGES for r in each.rglob("README.md"))]
COMMAND = re.compile(r"^tilefarm (?=[a-z])")


def printed(text: str) -> Iterator[str]:
    """Commands in a README: lines of its blocks, and what stands between backticks."""
    for block in re.findall(r"^```\w*\n(.*?)^```$", text, flags=re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            yield from filter(COMMAND.match, re.split(r"\s{3,}|\s&$|\s[|>]\s|\s*#\s", line.strip()))
    for span in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
        if COMMAND.match(span):
            yield span


@cache
def help_of(*words: str) -> str:
    """What a command, or an action of one, says of itself."""
    with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.suppress(SystemExit):
        parser(words[0]).parse_args([*words, "--help"])
    return told.getvalue()


def actions(command: str) -> list[str]:
    """Those that a command has, as its help lists them."""
    listed = re.search(r"^  [A-Z]+\n((?: {4,}.*\n)+)", help_of(command), flags=re.M)
    return re.findall(r"^    ([a-z]\S*)", listed[1], flags=re.M) if listed else []


def options_of(words: list[str]) -> set[str]:
    """Of the command, or of its action if it has any."""
    assert words[0] in COMMANDS, f"no command {words[0]}"
    inner = actions(words[0])
    if inner and len(words) > 1 and re.match("[a-z]", words[1]):
        assert words[1] in inner, f"no {words[0]} {words[1]}"
        told = help_of(words[0], words[1])
    else:
        told = help_of(words[0])
    listed = re.findall(r"^  (-.*?)(?:  |$)", told, flags=re.M)
    return {option for line in listed for option in re.findall(r"--[\w-]+", line)}


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_options_in_readmes_exist(readme: Path) -> None:
    for command in printed(readme.read_text()):
        words = shlex.split(command.replace("\\|", " "))[1:]
        known = options_of(words)
        for word in words:
            option = word.partition("=")[0]
            if option.startswith("--"):
                assert option in known, command


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sources_in_readmes_exist(readme: Path) -> None:
    files = [
        f"/{path.relative_to(ROOT)}"
        for each in (*PACKAGES, ROOT / "tests")
        for path in each.rglob("*.*")
    ]
    for name in re.findall(r"`([\w/]+\.(?:py|c|cc|h|proto|sh))`", readme.read_text()):
        assert any(path.endswith(f"/{name}") for path in files), name


LISTED = ("proto", "device_server", "tuner")
"""Packages whose READMEs name every file; larger ones name every folder."""


def test_readmes_name_every_file_or_folder() -> None:
    maps = {readme.parent: readme.read_text() for readme in READMES}
    missing = [
        str(module.relative_to(ROOT))
        for package in PACKAGES
        for module in package.rglob("*.py")
        if "_pb2" not in module.name and (package.name in LISTED or module.stem == "__init__")
        if (named := name_in_a_map(module)) and not re.search(named, map_of(module, maps))
    ]
    assert not missing


def name_in_a_map(module: Path) -> str:
    """How a README names a module, or the folder whose it is; empty if that need not be."""
    if module.stem == "__main__":
        return ""
    if module.stem == "__init__":
        return rf"\b{module.parent.name}/"
    return rf"\b{re.escape(module.name)}\b"


def map_of(module: Path, maps: dict[Path, str]) -> str:
    """The README next above a module; that of a folder is above the folder."""
    folder = module.parent.parent if module.stem == "__init__" else module.parent
    return next((maps[each] for each in (folder, *folder.parents) if each in maps), "")


def test_the_drivers_map_is_short_and_has_all_rooms() -> None:
    driver = ROOT / "driver"
    text = (driver / "README.md").read_text()
    rooms = {path.parent.name for path in driver.glob("*/__init__.py")}
    assert len(rooms) <= 10
    listed = re.findall(r"^\| `(\w+)/` \|", text.partition("## Where is")[0], flags=re.M)
    assert sorted(listed) == sorted(rooms)
    assert len(text.splitlines()) <= 150


def test_targets_of_make_in_readmes_exist() -> None:
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for readme in READMES:
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", readme.read_text(), flags=re.M):
            assert target in made, f"make {target}"


def test_the_readmes_are_read() -> None:
    commands = [command for readme in READMES for command in printed(readme.read_text())]
    assert len(commands) > 50
    assert {shlex.split(each)[1] for each in commands} >= set(COMMANDS) - {"job"}


def examples(name: str) -> Iterator[str]:
    """Every whole command that the help of a command prints."""
    for text in (help_of(name), *(help_of(name, action) for action in actions(name))):
        for line in text.replace("\\\n", " ").splitlines():
            if not line.startswith("  tilefarm "):
                continue
            example = re.split(r"\s{2,}|\s[|>]\s", line.strip())[0]
            if not re.search(r"\.\.\.|\b[A-Z]{4,}\b", example):
                yield example


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_help_are_understood(name: str) -> None:
    for example in examples(name):
        words = shlex.split(example)[1:]
        try:
            args, strange = parser(words[0]).parse_known_args(words)
        except SettingsError as error:
            if "there is no file" in str(error):
                continue  # one of the reader's
            pytest.fail(f"{example}: {error}")
        assert (args.command, strange) == (words[0], []), example


def test_most_commands_have_examples() -> None:
    assert sum(bool([*examples(name)]) for name in COMMANDS) >= len(COMMANDS) - 2
