"""Who has used its time up, and who only got no processor."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from types import SimpleNamespace

import pytest

from driver.farm.compiling.time_limit import overdue

ANSWERS = "Connection(int(sys.argv[1])).send(7)"
COMPUTES = "while True: pass"
SLEEPS = "time.sleep(1000)"


@contextmanager
def child(
    does: str, stdin: int | None = None
) -> Iterator[tuple[Connection, subprocess.Popen[bytes]]]:
    """A process that does this, and what it answers with."""
    ours, theirs = socket.socketpair()
    text = f"import sys, time; from multiprocessing.connection import Connection\n{does}"
    words = [sys.executable, "-c", text, str(theirs.fileno())]
    with subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=stdin) as process:
        theirs.close()
        try:
            yield Connection(ours.detach()), process
        finally:
            process.kill()


@pytest.mark.parametrize("does", [ANSWERS, "pass"])
def test_an_answer_is_not_overdue_and_neither_is_an_end(does: str) -> None:
    with child(does) as (pipe, process):
        assert overdue(pipe, process.pid, 60.0) is None


@pytest.mark.parametrize(("does", "why"), [(COMPUTES, "of processor time"), (SLEEPS, "asleep")])
def test_who_computes_or_sleeps_for_so_long_has_used_its_time_up(does: str, why: str) -> None:
    with child(does) as (pipe, process):
        late = overdue(pipe, process.pid, 0.5)
    assert late is not None
    assert late.is_its_own
    assert why in late.why


def test_who_is_stopped_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driver.farm.compiling.time_limit.PATIENCE", 3.0)
    with child(COMPUTES) as (pipe, process):
        process.send_signal(signal.SIGSTOP)
        late = overdue(pipe, process.pid, 0.5)
    assert late is not None
    assert not late.is_its_own
    assert "of a processor in" in late.why


def test_who_sleeps_now_and_then_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """It works on between its naps, so there is an end to wait for."""
    monkeypatch.setattr("driver.farm.compiling.time_limit.PATIENCE", 4.0)
    with child("for _ in range(10000):\n time.sleep(0.05)\n sum(range(1_000_000))") as (pipe, it):
        late = overdue(pipe, it.pid, 1.5)
    assert late is not None
    assert "asleep" not in late.why


def test_who_was_waited_for_by_somebody_who_was_stopped_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both were stopped for an hour, and then it answers."""
    with child(f"sys.stdin.read(1)\n{ANSWERS}", stdin=subprocess.PIPE) as (pipe, process):
        times = iter([0.0, 0.2, 0.4])

        def seconds() -> float:
            if (now := next(times, None)) is not None:
                return now
            assert process.stdin is not None
            process.stdin.close()
            return 3600.0

        clock = SimpleNamespace(monotonic=seconds)
        monkeypatch.setattr("driver.farm.compiling.time_limit.time", clock)
        late = overdue(pipe, process.pid, 60.0)
    assert late is None
