"""A farm that is not left alone for a while loses nothing, repeats nothing, and leaves nothing."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from kit.built import needs_c_kernels
from kit.farm.real_farm import CLI

from .harassed import Harassed
from .invariants import broken
from .nemesis import Nemesis
from .sessions import Session, reasons

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
SEED = int(os.environ.get("SOAK_SEED", "0")) or time.time_ns() % 10**6
HEALED_SECONDS = 240.0
GUESTS = 20


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 900)
@needs_c_kernels
def test_nothing_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Harassed(tmp_path, seed=SEED) as farm:
        nemesis, guests = Nemesis(farm, SEED), farm.guests(GUESTS)
        farm.sessions.start()
        try:
            with guests:
                nemesis.rage(SECONDS)
        finally:
            history = [json.dumps(asdict(event)) for event in nemesis.history]
            (tmp_path / "history.jsonl").write_text("\n".join(history))
            farm.sessions.end(HEALED_SECONDS, farm.look_after)
        sessions = farm.sessions.all
        undisturbed = tmp_path / "undisturbed"
        run_undisturbed(undisturbed, sessions[-1].trials)
        with capsys.disabled():
            print(f"\n{report(farm, nemesis)}\n{dict(guests.met)}")
        assert guests.wrong == [], f"seed {SEED}"
        assert guests.met["ran"], f"seed {SEED}"
        assert broken(farm, sessions, undisturbed / "records.sqlite") == [], f"seed {SEED}"


def test_sessions_that_gave_up_for_one_reason_are_counted_together() -> None:
    def ended(code: int, errors: str) -> Session:
        return Session(40, 0.0, code=code, errors=errors)

    lost = "tilefarm demo: devices were lost {} times: lease lease-{} is unknown\n  try: again\n"
    sessions = [
        ended(70, lost.format(3, "79446d51771b469c")),
        ended(0, ""),
        ended(70, "a warning\n" + lost.format(12, "0123456789abcdef")),
        ended(3, "tilefarm demo: nobody answers at 127.0.0.1:4711\n"),
        ended(-9, "tilefarm demo: sim1 is gone\n"),
        ended(70, ""),
    ]
    assert reasons(sessions) == {
        "70: devices were lost N times: lease lease-ID is unknown": 2,
        "3: nobody answers at ADDRESS": 1,
        "70: -": 1,
    }


def run_undisturbed(out: Path, trials: int) -> None:
    words = ["demo", "--no-ray", "--workers", "1", "--proposer", "random", "--seed", str(SEED)]
    command = [*CLI, *words, "--trials", str(trials), "--out", str(out), "--devices", "1"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def report(farm: Harassed, nemesis: Nemesis) -> str:
    """What happened, and how far the search came meanwhile."""
    faults = Counter(f"{event.fault} ({event.subject})" for event in nemesis.history)
    sessions = farm.sessions.all
    codes = Counter(session.code for session in sessions)
    told = max((max(s.numbers) for s in sessions if s.numbers), default=0)
    grown = max(session.grown_nbytes for session in sessions)
    silent = max(session.silent_seconds for session in sessions)
    return "\n".join(
        [
            f"seed {nemesis.seed}, {SECONDS:g} s: {len(nemesis.history)} faults, {told} trials",
            f"sessions by exit code: {dict(codes)}",
            *(f"{count:5} gave up with {why}" for why, count in reasons(sessions).most_common()),
            f"readmitted {len(farm.readmitted)}, started again {dict(Counter(farm.revived))}",
            *(f"{name} took {n >> 20} MiB" for name, n in farm.resident_nbytes.items()),
            f"a driver grew by {grown >> 20} MiB at most, and was silent for {silent:.0f} s",
            *(f"{count:5} {fault}" for fault, count in sorted(faults.items())),
        ]
    )
