"""The first signal stops a search, or says that there is none; whichever signal it is."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.search.stop import StopSwitch
from driver.terminal.interrupts import Interrupted, Interrupts

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    old = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in old.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_stops_a_search(number: signal.Signals, tmp_path: Path) -> None:
    stop, stopped = StopSwitch(), list[str]()
    stop.connect(lambda: stopped.append("stopped"))
    before = signal.getsignal(number)
    with Interrupts(stop, tmp_path):
        os.kill(os.getpid(), number)
    assert stopped == ["stopped"]
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", SIGNALS)
def test_without_a_search_it_interrupts(number: signal.Signals, tmp_path: Path) -> None:
    with pytest.raises(Interrupted), Interrupts(StopSwitch(), tmp_path):
        os.kill(os.getpid(), number)


def test_a_run_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interrupts(StopSwitch(), tmp_path):
        os.kill(os.getpid(), signal.SIGHUP)
