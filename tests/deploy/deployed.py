"""What `deploy/` holds, as data: its documents, and the command lines in them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from tilefarm.command_line import Parser

from device_server.device import command as device_command
from device_server.tracker import command as tracker_command
from driver import cli

ROOT: Final = Path(__file__).resolve().parents[2]
DEPLOY: Final = ROOT / "deploy"
SERVERS: Final = {"device": device_command, "tracker": tracker_command}

Document = Mapping[str, Any]


def documents(path: Path) -> list[Document]:
    """Every YAML document of a file."""
    return list(yaml.safe_load_all(path.read_text()))


def everything(document: object) -> Iterator[object]:
    """All that a document holds, itself first."""
    yield document
    if isinstance(document, Mapping):
        for each in document.values():
            yield from everything(each)
    elif isinstance(document, list):
        for each in document:
            yield from everything(each)


def served(words: Sequence[str]) -> argparse.Namespace:
    """The options of `python -m device_server WORDS`; SettingsError if there are none such."""
    server, *options = words
    parser = Parser(prog=server)
    SERVERS[server].add_arguments(parser)
    return parser.parse_args(options)


def commanded(line: str) -> argparse.Namespace:
    """The options of a shell's line `tilefarm WORDS`; SettingsError if there are none such."""
    name, *words = shlex.split(line)
    assert name == "tilefarm"
    return cli.parser(words[0]).parse_args(words)
