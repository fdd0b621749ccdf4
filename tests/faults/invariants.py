"""What must hold of a farm whatever happened to it; a list of what does not, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kit.farm.bounds import memory
from kit.farm.real_farm import gone
from tilefarm.measurement import Status, Trial

from tuner.trial_store import TrialStore

from .fault_rows import STALL_SECONDS
from .harassed import Harassed
from .sessions import SURVIVED, Session, began_at

_SILENT_SECONDS: Final = 10.0
_GROWN_NBYTES: Final = 100 << 20
_OPEN_FILES: Final = 128
_GAVE_UP: Final = 70
_LEASED: Final = re.compile(r"event=leased .*device=(\S+) fence=(\d+)")


def broken(farm: Harassed, sessions: Sequence[Session], undisturbed: Path) -> list[str]:
    """What does not hold, after everything was healed and the last session has ended.

    Args:
        undisturbed: the records of a run of the same seed that nothing happened to.
    """
    with TrialStore(farm.out / "records.sqlite", read_only=True) as store:
        trials = store.trials()
    with TrialStore(undisturbed, read_only=True) as store:
        expected = store.trials()
    return [
        *_lost_trials(sessions, trials),
        *_other_results(trials, expected),
        *(f"nobody found out that {name} was wrong" for name in farm.unnoticed),
        *_falling_fences(farm.log_of("tracker")),
        *_leaks(farm, sessions),
        *_bad_ends(sessions),
        *_tracebacks(farm),
        *_crashes(farm),
        *_large_servers(farm),
    ]


def _lost_trials(sessions: Sequence[Session], trials: Sequence[Trial]) -> Iterator[str]:
    """Every trial that was told is kept, is counted once, and is not measured again."""
    known = 0
    for number, session in enumerate(sessions):
        for told in session.numbers:
            # A driver that is killed between keeping a trial and telling it skips a number.
            if not known < told <= known + 2:
                yield f"session {number} tells of trial {told} after {known}"
            known = told
    if known > len(trials):
        yield f"{known} trials were told, {len(trials)} are kept"
    keys = Counter((trial.workload, trial.trace) for trial in trials)
    for (workload, trace), count in keys.items():
        if count > 1:
            yield f"workload {workload.short}, trace {trace.short} are kept {count} times"


def _other_results(trials: Sequence[Trial], expected: Sequence[Trial]) -> Iterator[str]:
    """Candidates end as they do where nothing happens, unless the farm spoiled all their runs."""
    undisturbed = {(t.workload, t.trace): (t.status, t.cycles) for t in expected}
    compared = 0
    for trial in trials:
        right = undisturbed.get((trial.workload, trial.trace))
        if trial.status.is_farm_fault or right is None:
            continue
        compared += 1
        if (trial.status, trial.cycles) != right:
            yield f"trace {trial.trace.short}: {trial.status.value} {trial.cycles}, not {right}"
        if trial.status is Status.OK and trial.artifact is None:
            yield f"trace {trial.trace.short} is ok without an artifact"
    if 2 * compared < len(trials):
        yield f"only {compared} of {len(trials)} candidates were those of the undisturbed run"


def _falling_fences(log: str) -> Iterator[str]:
    """A device's leases have ever higher fences, whatever became of the tracker."""
    highest: dict[str, int] = {}
    for device, fence in _LEASED.findall(log):
        if int(fence) <= highest.get(device, 0):
            yield f"{device} was leased with fence {fence} after {highest[device]}"
        highest[device] = int(fence)
    if not highest:
        yield "nothing was leased"


def _leaks(farm: Harassed, sessions: Sequence[Session]) -> Iterator[str]:
    open_files: Mapping[str, int] = farm.open_files()
    yield from (f"{who} has {n} files open" for who, n in open_files.items() if n > _OPEN_FILES)
    for number, session in enumerate(sessions):
        if not gone([pid for pid, began in session.below if began and began_at(pid) == began]):
            yield f"processes of session {number} are left"
        if session.grown_nbytes > _GROWN_NBYTES:
            yield f"session {number} grew by {session.grown_nbytes >> 20} MiB"
    left = [path.name for path in farm.temporary.glob("tilefarm-run-*")]
    if left:
        yield f"folders are left: {', '.join(left)}"


def _bad_ends(sessions: Sequence[Session]) -> Iterator[str]:
    """A session is done, was killed, or says what was wrong; none is silent for long."""
    for number, session in enumerate(sessions):
        if session.code not in SURVIVED:
            yield f"session {number} ended with {session.code}: {session.errors}"
        if session.code in (3, 70) and not session.errors.strip():
            yield f"session {number} ended with {session.code} and said nothing"
        if "Traceback" in session.errors:
            yield f"session {number}: {session.errors}"
        if session.silent_seconds > _SILENT_SECONDS + STALL_SECONDS:
            yield f"session {number} was silent for {session.silent_seconds:.0f} s"
    last = sessions[-1]
    if last.summary is None or last.summary["accuracy"]["differing"]:
        yield "the last session did not end with a program that is right"


def _crashes(farm: Harassed) -> Iterator[str]:
    """No server ends by itself but one that hangs, or is not right when it begins."""
    for name, code in farm.revived:
        if code != _GAVE_UP:
            yield f"{name} ended with {code}: {farm.log_of(name)[-2000:]}"


def _large_servers(farm: Harassed) -> Iterator[str]:
    """No server takes more memory than the documentation says."""
    most = memory()
    for name, nbytes in farm.resident_nbytes.items():
        kind = "tracker" if name == "tracker" else "device"
        if nbytes > most[kind]:
            yield f"{name} took {nbytes >> 20} MiB, more than {most[kind] >> 20} MiB"


def _tracebacks(farm: Harassed) -> Iterator[str]:
    for name in farm.servers:
        log = farm.log_of(name)
        if "Traceback" in log:
            yield f"{name}: {log[log.index('Traceback') :][:3000]}"
