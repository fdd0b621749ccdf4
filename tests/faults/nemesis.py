"""What happens to a farm that is not left alone: faults of random kinds, times and lengths."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from kit.farm.crowd import connect, knock_and_run, silent_calls
from kit.farm.full_disk import fill_disk
from kit.farm.proxy import Proxy
from tilefarm.rpc import methods
from tilefarm.rpc.caller import authorization
from tilefarm.rpc.version import announcement

from driver.processes import descendants

from .harassed import Harassed

Undo: TypeAlias = Callable[[], object]

_LONGEST_SECONDS: Final = 12.0
_PAUSE_SECONDS: Final = (0.2, 3.0)
_TICK_SECONDS: Final = 0.1
_FAR_NBYTES: Final = 200_000
_STRANGERS: Final = 500
_SILENT_CALLS: Final = 300
_BELIEVED_SECONDS: Final = (1.0, 6.0)
_NOTICED_SECONDS: Final = 90.0
"""Until a device that is wrong has run 50 kernels, the driver's own beginning included."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault.

    Attributes:
        begin: lets it happen to somebody, and gives what ends it.
        lasts: whether it goes on until it is ended.
        alone: whether everything else is healed before: it is about what becomes of this one.
    """

    name: str
    subjects: Sequence[str]
    begin: Callable[[Harassed, str, random.Random], Undo]
    lasts: bool = True
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Happened:
    """A line of the history: what happened to whom, from when to when, in seconds of the run."""

    fault: str
    subject: str
    began: float
    ended: float


@dataclass(slots=True)
class Nemesis:
    """Picks faults, one at a time for each subject, and writes down what it did."""

    farm: Harassed
    seed: int
    history: list[Happened] = field(default_factory=list)

    def rage(self, seconds: float) -> None:
        """Do so for so long; everything is healed in the end."""
        chance = random.Random(self.seed)
        began = time.monotonic()
        under_way: dict[str, tuple[Fault, float, float, Undo]] = {}
        next_at = 0.0
        try:
            while (now := time.monotonic() - began) < seconds:
                for subject in [s for s, (_, _, until, _) in under_way.items() if until <= now]:
                    self._end(under_way, subject, now)
                if now >= next_at:
                    self._begin(under_way, chance, now)
                    next_at = now + chance.uniform(*_PAUSE_SECONDS)
                self.farm.look_after()
                time.sleep(_TICK_SECONDS)
        finally:
            for subject in list(under_way):
                self._end(under_way, subject, time.monotonic() - began)

    def _begin(
        self,
        under_way: dict[str, tuple[Fault, float, float, Undo]],
        chance: random.Random,
        now: float,
    ) -> None:
        fault = chance.choice(FAULTS)
        subject = chance.choice(fault.subjects)
        seconds = chance.uniform(0.1, _LONGEST_SECONDS) if fault.lasts else 0.0
        for other in list(under_way) if fault.alone else []:
            self._end(under_way, other, now)
        if subject not in under_way:
            undo = fault.begin(self.farm, subject, chance)
            under_way[subject] = (fault, now, now + seconds, undo)

    def _end(
        self, under_way: dict[str, tuple[Fault, float, float, Undo]], subject: str, now: float
    ) -> None:
        fault, began, _, undo = under_way.pop(subject)
        undo()
        self.history.append(Happened(fault.name, subject, round(began, 2), round(now, 2)))


def _nothing() -> None:
    """What ends a fault that is over at once."""


def _kill_server(farm: Harassed, subject: str, _: random.Random) -> Undo:
    farm.servers[subject].kill()
    return lambda: farm.start(subject)


def _freeze_server(farm: Harassed, subject: str, _: random.Random) -> Undo:
    server = farm.servers[subject]
    if not server.alive:
        return _nothing
    server.freeze()
    return server.thaw


def _rotate(farm: Harassed, subject: str, _: random.Random) -> Undo:
    farm.rotate(subject)
    return _nothing


def _besiege(farm: Harassed, subject: str, chance: random.Random) -> Undo:
    """Strangers who come and go, and strangers who stay and say nothing."""
    address = farm.address_of(subject)
    staying = ExitStack()
    with contextlib.suppress(OSError):  # the server is away
        knock_and_run(address, chance.randint(1, _STRANGERS))
        for _ in range(chance.randint(1, _STRANGERS)):
            staying.enter_context(connect(address))
    return staying.close


def _say_nothing(farm: Harassed, subject: str, chance: random.Random) -> Undo:
    """Headers of calls that no message follows, with a token and without."""
    address = farm.address_of(subject)
    path = (methods.ACQUIRE if subject == "tracker" else methods.WRITE).path
    staying = ExitStack()
    for metadata in ((), (*authorization(farm.token), *announcement())):
        count = chance.randint(1, _SILENT_CALLS)
        calls = silent_calls(address, path, metadata, calls=count, tls=farm.somebody)
        staying.enter_context(calls)
    return staying.close


def _slow(farm: Harassed, subject: str, _: random.Random) -> Undo:
    farm.slow_down(subject)
    return lambda: farm.speed_up(subject)


def _fill_disk(farm: Harassed, subject: str, _: random.Random) -> Undo:
    server = farm.servers[subject]
    return fill_disk(server.pid) if server.alive else _nothing


def _jump(farm: Harassed, subject: str, chance: random.Random) -> Undo:
    farm.skews[subject].jump(chance.randint(-3600, 3600))
    return _nothing


def _lie(farm: Harassed, subject: str, _: random.Random) -> Undo:
    farm.lie(subject)
    until = time.monotonic() + _NOTICED_SECONDS
    while farm.lies(subject):
        farm.look_after()
        time.sleep(_TICK_SECONDS)
        if time.monotonic() > until:
            farm.unnoticed.append(subject)
            break
    return _nothing


def _lie_and_kill(farm: Harassed, subject: str, chance: random.Random) -> Undo:
    """The driver that believes a lie is no more when it comes out; the next one has to hear."""
    farm.lie(subject)
    time.sleep(chance.uniform(*_BELIEVED_SECONDS))
    farm.sessions.kill()
    return _lie(farm, subject, chance)


def _kill_driver(farm: Harassed, _subject: str, _: random.Random) -> Undo:
    farm.sessions.kill()
    return _nothing


def _kill_compiler(farm: Harassed, _subject: str, chance: random.Random) -> Undo:
    compilers = list(_below(farm.sessions.pid, "driver.farm.compiling.worker"))
    if compilers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(compilers), signal.SIGKILL)
    return _nothing


def _on_proxy(
    change: Callable[[Proxy, random.Random], object],
) -> Callable[[Harassed, str, random.Random], Undo]:
    def begin(farm: Harassed, subject: str, chance: random.Random) -> Undo:
        proxy = farm.proxies[subject]
        change(proxy, chance)
        return proxy.heal

    return begin


def _below(pid: int | None, words: str) -> Iterator[int]:
    for child in descendants(pid) if pid is not None else []:
        with contextlib.suppress(OSError):
            if words in Path(f"/proc/{child}/cmdline").read_text().replace("\0", " "):
                yield child


SERVERS: Final = ("tracker", "sim0", "sim1", "sim2")
DEVICES: Final = SERVERS[1:]
LINKS: Final = tuple(f"way to {name}" for name in SERVERS)

FAULTS: Final = (
    Fault("killed", SERVERS, _kill_server),
    Fault("frozen", SERVERS, _freeze_server),
    Fault("certificate rotated", SERVERS, _rotate, lasts=False),
    Fault("besieged", SERVERS, _besiege),
    Fault("called without a message", SERVERS, _say_nothing),
    Fault("slow", DEVICES, _slow),
    Fault("disk full", DEVICES, _fill_disk),
    Fault("clock jumps", SERVERS, _jump, lasts=False),
    Fault("lies", DEVICES, _lie, lasts=False, alone=True),
    Fault("lies to one that is killed", DEVICES, _lie_and_kill, lasts=False, alone=True),
    Fault("killed", ("driver",), _kill_driver, lasts=False),
    Fault("killed", ("compiler",), _kill_compiler, lasts=False),
    Fault("cut", LINKS, _on_proxy(lambda proxy, _: proxy.cut())),
    Fault("cut one way", LINKS, _on_proxy(lambda p, c: p.cut(c.choice(["up", "down"])))),
    Fault("reset", LINKS, _on_proxy(lambda proxy, _: proxy.reset()), lasts=False),
    Fault("half open", LINKS, _on_proxy(lambda proxy, _: proxy.half_open())),
    Fault("delayed", LINKS, _on_proxy(lambda p, c: p.delay(c.uniform(0.01, 0.5)))),
    Fault(
        "bit flipped",
        LINKS,
        _on_proxy(lambda p, c: p.flip(c.choice(["up", "down"]), c.randint(0, _FAR_NBYTES))),
    ),
    Fault(
        "truncated",
        LINKS,
        _on_proxy(lambda p, c: p.truncate(c.choice(["up", "down"]), c.randint(0, _FAR_NBYTES))),
    ),
)
"""What may happen; the numbers of rows are in `fault_rows`."""
