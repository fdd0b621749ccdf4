"""Whatever thread of a run raises what nobody foresaw: the run ends at once, and says why."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from driver.cli import main
from driver.farm.children import Child
from driver.farm.compiling.retrying_worker import RetryingWorker
from driver.farm.device_messages import Order
from driver.farm.leases import Leases
from driver.farm.measurer import Measurer
from driver.tune.stall_reporter import StallReporter
from tuner.session import TuningSession
from tuner.trial_store import TrialStore

WORDS = ("demo", "--json", "--no-ray", "--workers", "1", "--devices", "1", "--trials", "40")
KNOWN = 3
"""So many trials are measured before something breaks."""


class Fault:
    """Raised by what it is put in front of, once some trials are recorded."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self._patched = patched
        self.recorded = threading.Event()
        insert, count = TrialStore.insert, [0]

        def counted(store: TrialStore, *args: Any, **options: Any) -> bool:
            count[0] += 1
            if count[0] >= KNOWN:
                self.recorded.set()
            return insert(store, *args, **options)

        patched.setattr(TrialStore, "insert", counted)

    def put(self, owner: object, name: str) -> None:
        real = getattr(owner, name)

        def raising(*args: Any, **options: Any) -> Any:
            if self.recorded.is_set():
                raise ZeroDivisionError("nobody foresaw this")
            return real(*args, **options)

        self._patched.setattr(owner, name, raising)

    def put_behind_the_search(self, owner: object, name: str) -> None:
        """In front of runs that are no candidate's."""
        real = getattr(owner, name)

        def raising(measurer: object, orders: Sequence[Order]) -> Any:
            if not orders[0].candidate:
                raise ZeroDivisionError("nobody foresaw this")
            return real(measurer, orders)

        self._patched.setattr(owner, name, raising)


def tuner(fault: Fault, _: pytest.MonkeyPatch) -> None:
    fault.put(TuningSession, "ask")


def device(fault: Fault, _: pytest.MonkeyPatch) -> None:
    fault.put(Measurer, "run")


def device_after_the_search(fault: Fault, _: pytest.MonkeyPatch) -> None:
    fault.put_behind_the_search(Measurer, "run")


def compiler(fault: Fault, _: pytest.MonkeyPatch) -> None:
    fault.put(RetryingWorker, "compile")


def renewals(fault: Fault, patched: pytest.MonkeyPatch) -> None:
    patched.setattr(Leases, "_pause_seconds", lambda _: 0.1)
    fault.put(Leases, "_return_again")


def farm(fault: Fault, patched: pytest.MonkeyPatch) -> None:
    """Where it looks whether its children live."""
    lives = vars(Child)["alive"].fget

    def raising(child: Child) -> bool:
        if fault.recorded.is_set() and threading.current_thread().name == "farm":
            raise ZeroDivisionError("nobody foresaw this")
        return bool(lives(child))

    patched.setattr(Child, "alive", property(raising))


def silence(fault: Fault, _: pytest.MonkeyPatch) -> None:
    fault.put(StallReporter, "look")


BREAKS: tuple[Callable[[Fault, pytest.MonkeyPatch], None], ...] = (
    tuner,
    device,
    device_after_the_search,
    compiler,
    renewals,
    farm,
    silence,
)

QUICK = (device,)
"""Where most of a run happens; the other threads take as long again, each."""


@pytest.mark.whole
@pytest.mark.parametrize(
    "break_",
    [
        pytest.param(each, id=each.__name__, marks=() if each in QUICK else pytest.mark.slow)
        for each in BREAKS
    ],
)
def test_a_run_with_a_broken_thread_ends_and_keeps_its_records(
    break_: Callable[[Fault, pytest.MonkeyPatch], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    break_(Fault(monkeypatch), monkeypatch)
    out = tmp_path / "out"
    code = main([*WORDS, "--out", str(out)])
    told, complaint = capfd.readouterr()
    assert code == 70, complaint
    what, remedy = complaint.strip().splitlines()
    assert what.endswith("internal error: ZeroDivisionError: nobody foresaw this")
    log = Path(remedy.removeprefix("  try: read ").removesuffix(", and report it"))
    assert log.parent == out
    assert "in raising" in log.read_text(), "where it happened"
    trials = sum(json.loads(line)["event"] == "trial" for line in told.splitlines())
    with TrialStore(out / "records.sqlite", read_only=True) as store:
        assert store.count() >= max(trials, KNOWN)
