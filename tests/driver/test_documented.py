"""What READMEs and `--help` name exists: commands, every option that they are given, and files."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
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


def innermost(words: list[str]) -> argparse.ArgumentParser:
    """The parser of the command, or of its action if it has any."""
    found = _actions(parser(words[0])).get(words[0])
    assert found is not None, f"no command {words[0]}"
    inner = _actions(found)
    if inner and len(words) > 1 and re.match("[a-z]", words[1]):
        assert words[1] in inner, f"no {words[0]} {words[1]}"
        return inner[words[1]]
    return found


def _actions(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_options_in_readmes_exist(readme: Path) -> None:
    for command in printed(readme.read_text()):
        words = shlex.split(command.replace("\\|", " "))[1:]
        known = innermost(words)._option_string_actions
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
    command = _actions(parser(name))[name]
    for each in (command, *_actions(command).values()):
        text = (each.epilog or "").replace("\\\n", " ")
        for line in text.splitlines():
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
            pytest.fail(f"{example}: {error}")
        assert (args.command, strange) == (words[0], []), example


def test_most_commands_have_examples() -> None:
    assert sum(bool([*examples(name)]) for name in COMMANDS) >= len(COMMANDS) - 2
