"""Servers of a bench's farm as processes of their own: a tracker, and simulators that it knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tilefarm.sandbox import SandboxLevel
from tilefarm.trust.access import FarmRole

from driver.benchmarks.farm.proofs import Proofs
from driver.farm.children import Child


@dataclass(frozen=True, slots=True)
class ServedFarm:
    """A farm that serves: where its tracker is, and its processes."""

    tracker: str
    pids: tuple[int, ...]


@contextmanager
def own_tracker(listen: str, proofs: Proofs) -> Iterator[tuple[Child, str]]:
    """A tracker that keeps what it knows, and its address."""
    state = str(proofs.folder / "tracker.sqlite")
    words = ["tracker", "--listen", listen, "--state", state]
    words += proofs.words(FarmRole.TRACKER, "tracker")
    with _running("tracker", words, proofs.folder) as child:
        yield child, child.ready()


@contextmanager
def simulators(count: int, proofs: Proofs) -> Iterator[ServedFarm]:
    """A tracker and so many simulators; who leases one waits until it has registered."""
    with own_tracker("127.0.0.1:0", proofs) as (tracker, address), ExitStack() as owned:
        pids = [tracker.pid]
        for name in (f"sim{number}" for number in range(count)):
            words = ["device", "--name", name, "--tracker", address]
            words += ["--folder", str(proofs.folder / name), "--require-sandbox", SandboxLevel.NONE]
            words += proofs.words(FarmRole.DEVICE, name)
            pids.append(owned.enter_context(_running(name, words, proofs.folder)).pid)
        yield ServedFarm(address, tuple(pids))


@contextmanager
def _running(name: str, words: list[str], folder: Path) -> Iterator[Child]:
    child = Child(name, words, folder / f"{name}.log")
    try:
        yield child
    finally:
        child.terminate()
        child.join()
