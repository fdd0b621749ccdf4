"""Clients beside the one that tunes: they look on, lease what is free, run a kernel, and go."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kit.farm.throng import Throng
from kit.kernels.c_kernels import Y, blobs, job
from tilefarm.errors import TilefarmError
from tilefarm.measurement import Measurement
from tilefarm.target import Target
from tilefarm.trust.tls import Credentials

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient

_PAUSE_SECONDS: Final = (0.2, 2.0)
_LOOKS: Final = 4
"""In one of so many rounds a guest wants a device; in the others it looks on."""


@dataclass(slots=True)
class Guests(Throng):
    """One thread for each of the guests, until the end of the context.

    Attributes:
        who: what each of them shows.
        met: how their rounds ended, by kind.
        wrong: answers that were not right, and errors that are no error of a farm.
    """

    tracker: Callable[[], str]
    target: Target
    who: Sequence[Credentials]
    seed: int
    met: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def bodies(self) -> list[Callable[[], None]]:
        return [partial(self._come, number, shown) for number, shown in enumerate(self.who)]

    def _come(self, number: int, shown: Credentials) -> None:
        chance = random.Random(1000 * self.seed + number)
        for visit in itertools.count():
            if self._ended.wait(chance.uniform(*_PAUSE_SECONDS)):
                return
            try:
                met = self._visit(shown, f"guest {number}, {visit}", leases=not visit % _LOOKS)
            except TilefarmError as error:
                met = type(error).__name__  # servers are killed, devices quarantined
            except Exception as error:
                met = "fault"
                self.wrong.append(f"guest {number}: {error!r}")
            self.met[met] += 1

    def _visit(self, shown: Credentials, request: str, *, leases: bool) -> str:
        with TrackerClient(self.tracker(), shown) as client:
            if not leases:
                client.overview()
                return "looked on"
            lease = client.acquire(self.target.digest, wait_seconds=0.0, owner="guest")
            if lease is None:
                return "nothing free"
            try:
                with DeviceClient(lease, shown) as device:
                    device.ensure(blobs())
                    outcome = device.run(job("increment"), request_id=request)
            finally:
                client.release(lease)
        if not isinstance(outcome, Measurement):
            return outcome.status.value
        if dict(outcome.outputs) != {"y": Y}:
            self.wrong.append(f"{request}: a wrong answer")
        return "ran"
