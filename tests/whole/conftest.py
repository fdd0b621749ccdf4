"""Simulators that whole networks share, and commands that end with their test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kit.built import no_simulator, require
from kit.networks.simulated import Simulators

from .foreground import Command


@pytest.fixture(scope="module")
def simulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulators]:
    """A simulator for each target; tests that need one are skipped where none is built."""
    require(no_simulator)
    with Simulators(tmp_path_factory.mktemp("blobs")) as made:
        yield made


@pytest.fixture
def run() -> Iterator[type[Command]]:
    started: list[Command] = []

    class Watched(Command):
        def __post_init__(self) -> None:
            super().__post_init__()
            started.append(self)

    yield Watched
    for command in started:
        if command.process.poll() is None:
            command.kill()
        command.process.communicate()
