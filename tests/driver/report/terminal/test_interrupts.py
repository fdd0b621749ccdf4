"""The first signal stops a search, or says that there is none; whichever signal it is."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.manual_clock import ManualClock

from driver.report.terminal import interrupts
from driver.report.terminal.interrupts import Interrupted, Interrupts
from driver.stop_token import StopToken

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Signals as a terminal gives them; what started the tests may have them ignored."""
    old = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in old.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_stops_a_search(number: signal.Signals, tmp_path: Path) -> None:
    stop, stopped = StopToken(), list[str]()
    stop.connect(lambda: stopped.append("stopped"))
    before = signal.getsignal(number)
    with Interrupts(stop, tmp_path):
        os.kill(os.getpid(), number)
    assert stopped == ["stopped"]
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", SIGNALS)
def test_without_a_search_it_interrupts(number: signal.Signals, tmp_path: Path) -> None:
    with pytest.raises(Interrupted), Interrupts(StopToken(), tmp_path):
        os.kill(os.getpid(), number)


def test_one_press_that_arrives_twice_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`timeout -s INT` signals the process, and then its group."""
    clock, ended, killed = ManualClock(), list[str](), list[int]()
    monkeypatch.setattr(os, "_exit", lambda code: ended.append("ended"))
    # The tests' process has children of its own, such as the one that multiprocessing keeps.
    monkeypatch.setattr(interrupts, "kill_descendants", lambda root: killed.append(root))
    stop = StopToken()
    stop.connect(lambda: None)
    with Interrupts(stop, tmp_path, clock):
        os.kill(os.getpid(), signal.SIGINT)
        clock.advance(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        assert not ended
        clock.advance(0.2)
        os.kill(os.getpid(), signal.SIGINT)
        assert (killed, ended) == ([os.getpid()], ["ended"])


def test_a_run_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interrupts(StopToken(), tmp_path):
        os.kill(os.getpid(), signal.SIGHUP)
