"""Attacks on bounds by the rows that they belong to, and what they find there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from kit.farm.in_process import CREDENTIALS, Farm, eventually
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.errors import TilefarmError
from tilefarm.measurement import RunJob

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient

CODE: Final = Elf().build()
JOB: Final = RunJob(artifact=Digest.of(CODE), entry="echo", buffers=())


@dataclass(frozen=True, slots=True)
class Found:
    """What happened beyond a bound, and who heard of it: the words of its row."""

    beyond: str
    heard: str


FORGOTTEN: Final = Found("the oldest are forgotten", "nobody: they are sent or asked for again")
CUT: Final = Found("cut", "whoever reads it")
THE_SERVER: Final = "who asks, and the server's log (`over_bounds`)"


@dataclass(frozen=True, slots=True)
class Lab:
    """Where an attack takes place."""

    folder: Path
    patch: pytest.MonkeyPatch
    farm: Farm

    def logged(self, event: str) -> list[dict[str, object]]:
        """What the servers of the farm have told of an event."""
        return [fields for name, fields in self.farm.events if name == event]

    def device(self, **how: Any) -> AbstractContextManager[DeviceClient]:
        """The client of a leased device that lacks no blob of JOB."""
        tracker = self.farm.tracker()
        self.farm.device(tracker=tracker, **how)
        with TrackerClient(tracker.address, CREDENTIALS) as client:
            lease = client.acquire(self.farm.target.digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        return DeviceClient(lease, CREDENTIALS)


Attack: TypeAlias = Callable[[Lab], Found]
ATTACKS: Final[dict[str, Attack]] = {}


def attack(row: str) -> Callable[[Attack], Attack]:
    """The decorator of the attack that goes beyond the bound of a row."""

    def keep(made: Attack) -> Attack:
        assert row not in ATTACKS, row
        ATTACKS[row] = made
        return made

    return keep


def refused(attempt: Callable[[], object], match: str, heard: str = "who asks") -> Found:
    """What somebody finds whose attempt has to be refused in these words, with what to try."""
    with pytest.raises(TilefarmError, match=match) as error:
        attempt()
    assert error.value.hint, f"no hint: {error.value.what}"
    return Found(f"refused: `{type(error.value).__name__}`", heard)


def refused_by_server(lab: Lab, attempt: Callable[[], object], match: str) -> Found:
    """As `refused`; the owner of the server sees it, too."""
    found = refused(attempt, match)
    eventually(lambda: bool(lab.logged("over_bounds")))
    assert lab.logged("over_bounds")[-1]["why"]
    return Found(found.beyond, THE_SERVER)
