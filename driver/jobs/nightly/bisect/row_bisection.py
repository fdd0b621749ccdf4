"""A row's bisection: between which commits, with which schedules, by what noise."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import DataError, OutputError, TilefarmError
from tilefarm.measurement import DeviceClock
from tilefarm.printable import printable
from tilefarm.system_errors import unwritable

from driver.atomic_write import write_atomically
from driver.jobs.nightly.bisect.bisection import MeasuredCommits, bisected
from driver.jobs.nightly.bisect.checkout import Checkout, Commit
from driver.jobs.nightly.bisect.commit_search import CommitSearch
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.judging.machine_noise import spread
from driver.jobs.nightly.night.measured_run import measured_run
from driver.jobs.nightly.night.row_command import CompilingPart, row_words
from driver.jobs.nightly.records import ChosenSchedule, Judged, Row, Sample, Verdict
from driver.jobs.nightly.words import row_file
from driver.jobs.nightly.zoo_file import ZooRow
from driver.tune.chosen_schedules import schedules_text

_NIGHTS: Final = 30
"""The last ones, which say by how much times differ for no reason."""
_LEAST_SPREAD: Final = 0.002
_FEW: Final = 5
"""Nights below which the spread within one says more."""
_SECONDS: Final = 3600.0
"""For one measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """What is looked for.

    Attributes:
        good, bad: commits, as the history has them or as somebody says.
        schedules: what both are built with.
        spread: of times, one standard deviation as a share of them; 0 for cycles.
        clock: what times are told in.
    """

    row: Row
    good: str
    bad: str
    schedules: tuple[ChosenSchedule, ...]
    spread: float
    clock: DeviceClock

    @property
    def about(self) -> str:
        """What a file of measurements says of itself: commits are the same whatever their ends."""
        digests = sorted(each.trace.digest.hex for each in self.schedules)
        return f"{self.row}, schedules {Digest.of_json(digests).short}"


def row_change(history: History, row: Row, good: str | None, bad: str | None) -> RowChange:
    """The last change of a row, or the one between two commits.

    Raises:
        DataError: the history knows of none, or not of which commits.
    """
    samples = history.samples(row=row)
    if not samples:
        raise DataError(
            f"{history.file.path} has nothing of {row}",
            "`'MODEL on TARGET'`, as the zoo's file names them, after a night or two",
        )
    judged = _last_slower(history.verdicts(row=row))
    now, before = samples[-1], samples[-1]
    if judged is not None:
        now = _of_night(samples, judged.night, samples[-1])
        before = _of_night(samples, judged.against, now)
    elif good is None or bad is None:
        raise DataError(
            f"no night has called {row} slower",
            "--good COMMIT and --bad COMMIT name two that differ",
        )
    ends = good or before.order.commit, bad or now.order.commit
    if not all(ends):
        raise DataError(
            f"the nights of {row} were measured without a checkout: no commit is known of them",
            "--good COMMIT and --bad COMMIT name two",
        )
    return RowChange(
        row=row,
        good=ends[0],
        bad=ends[1],
        schedules=history.schedules(before.schedules),
        spread=_spread([sample for sample in samples if sample.machine == now.machine]),
        clock=now.machine.clock,
    )


def _last_slower(verdicts: Sequence[Judged]) -> Judged | None:
    """The first of the last nights in a row that were slower."""
    slower = [each for each in verdicts if each.verdict is Verdict.SLOWER and each.against]
    return next((each for each in slower if each.against == slower[-1].against), None)


def _of_night(samples: Sequence[Sample], night: str, like: Sample) -> Sample:
    """A night's sample, of the schedules of another one if there is one; or that other one."""
    of_night = [sample for sample in samples if sample.night == night]
    same = [sample for sample in of_night if sample.schedules == like.schedules]
    return next(iter(same or of_night), like)


def _spread(samples: Sequence[Sample]) -> float:
    """By which a night's times differ from the next one's, as a share; 0 for cycles."""
    if samples[-1].machine.clock is DeviceClock.CYCLES:
        return 0.0
    last = samples[-_NIGHTS:]
    within = median((s.time.high - s.time.low) / 2 / s.time.cost for s in last)
    steps = [
        (now.time.cost / before.time.cost - 1) / 2**0.5
        for before, now in pairwise(last)
        if before.schedules == now.schedules
    ]
    return max(_LEAST_SPREAD, spread(steps) if len(steps) >= _FEW else within)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBisection:
    """One of them, in a folder where it goes on after a kill.

    Attributes:
        folder: of all bisections of a history.
        build: the command that builds a commit.
        say: is told what goes on, line by line.
    """

    change: RowChange
    row: ZooRow
    repository: Path
    folder: Path
    build: Sequence[str]
    say: Callable[[str], None]

    def run(self, *, again: bool) -> tuple[tuple[Commit, ...], CommitSearch]:
        """The commits of the range, and what is known of them in the end.

        Args:
            again: forget what was measured before.

        Raises:
            DataError: the commits are no range of the repository.
            OutputError: the folder cannot be written.
        """
        home = self._home
        if again:
            shutil.rmtree(home, ignore_errors=True)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(home, error, "choose another --history") from None
        write_atomically(self._given, schedules_text(self.change.schedules).encode())
        checkout = Checkout(
            self.repository, (self.folder / "checkout").absolute(), self.build, home / "build.log"
        )
        commits = checkout.commits(self.change.good, self.change.bad)
        self.say(f"{self.change.row}: {len(commits) - 1} commits from {commits[0]}")
        kept = MeasuredCommits(home / "measured.jsonl", self.change.about)
        search = bisected(
            commits,
            self.change.spread,
            kept,
            lambda commit: checkout.built(commit) or self._measured(checkout.folder, commit),
            self.say,
        )
        return commits, search

    @property
    def _home(self) -> Path:
        return self.folder / row_file(self.change.row).removesuffix(".html")

    @property
    def _given(self) -> Path:
        return self._home / "schedules.json"

    def _measured(self, checkout: Path, commit: Commit) -> float | str:
        """Cycles or seconds of the row by the code that is built there; or why there are none."""
        out = self._home / "run"
        shutil.rmtree(out, ignore_errors=True)
        words = row_words(self.row, self._given, out, compiling=CompilingPart())
        log = self._home / f"{commit.short}.log"
        try:
            with log.open("wb") as stream:
                done = subprocess.run(
                    [str(checkout / ".venv/bin/tilefarm"), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    timeout=_SECONDS,
                )
            if done.returncode:
                return f"exit code {done.returncode}, see {log}: {_last_line(log)}"
            measured = measured_run(out)
        except subprocess.TimeoutExpired:
            return f"takes more than {_SECONDS:g} s, see {log}"
        except OutputError:
            raise
        except (OSError, TilefarmError) as error:
            return printable(str(error))
        if measured is None:
            return f"nothing was measured, see {log}"
        if measured.machine.clock is not self.change.clock:
            return f"its times are {measured.machine.clock.value}"
        return measured.time.cost


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    return printable(lines[-1]) if lines else "nothing was said"
