"""One night: what is left to do of it, row by row, until it is done or its time is over.

All that a night knows is in its history and in the folders of its rows. One that was killed looks
there, and does the rest; nothing that was measured is measured again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from tilefarm.clock import Clock
from tilefarm.errors import DiskError, InfraError, TargetError
from tilefarm.interpreter import python_command

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.night_order import clock_went_back
from driver.jobs.nightly.night.events import (
    NightBegan,
    NightEvent,
    NightNotice,
    RowBegan,
    RowDone,
    RowLeft,
)
from driver.jobs.nightly.night.recording import Recorded, Recorder
from driver.jobs.nightly.night.row_command import (
    CompilingPart,
    SearchPart,
    row_words,
    times_by_our_clock,
)
from driver.jobs.nightly.night.row_folder import row_folder
from driver.jobs.nightly.night.row_process import RowEnd, RowRunner, keep_end, kept_end
from driver.jobs.nightly.records import Night, Row
from driver.jobs.nightly.zoo_file import ZooRow
from driver.stop_token import StopToken

RECORDS: Final = "schedules.sqlite"
"""What all nights know of schedules, in the zoo's folder."""
_GOES_ON: Final = 75
"""The exit code of a run that can be continued: its disk is full, its cluster is gone."""
_REMEMBERED: Final = 30
"""Nights that say which rows were measured last."""
_SEARCHING: Final = 0.5
"""Of a row's share of the time that is left, what its search may take of it."""

Listener: TypeAlias = Callable[[NightEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightSettings:
    """What a night is asked to do.

    Attributes:
        folder: of the zoo: its history, its nights' folders.
        rows: those to measure.
        seconds: by the wall clock, from its begin on.
        every_seconds: after the begin of a night that has ended the next one begins.
        at_a_time: rows beside one another; those that our own clock times are alone.
        compiling: what every row's process gets.
        version, commit: of the code, see `Order`.
    """

    folder: Path
    rows: Sequence[ZooRow]
    seconds: float
    every_seconds: float = 0.0
    at_a_time: int = 1
    compiling: CompilingPart = field(default_factory=CompilingPart)
    version: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightEnd:
    """How far a night came; `left` are rows that the same command still has to do."""

    night: Night
    left: tuple[Row, ...]


class NightRun:
    """One of them.

    Args:
        settings: what is done.
        history: nobody else measures a night of it meanwhile.
        runner: of the rows' processes.
        stop: once requested, no further row begins; who requests it stops the runner as well.
        clock: tells when the time is over.
        listen: is told of everything, in the thread that runs the night.
    """

    def __init__(
        self,
        settings: NightSettings,
        history: History,
        runner: RowRunner,
        *,
        stop: StopToken,
        clock: Clock,
        listen: Listener,
    ) -> None:
        self._settings = settings
        self._history = history
        self._runner = runner
        self._stop = stop
        self._clock = clock
        self._listen = listen
        self._left: list[Row] = []
        self._begun = 0

    def run(self) -> NightEnd:
        """Do what is left of the night.

        Raises:
            OutputError: the history cannot be written; what was measured is in the rows' folders.
        """
        self._night = night = self._this_night()
        nights = [each.name for each in self._history.nights()]
        self._number = nights.index(night.name)
        elapsed = max(0.0, self._clock.wall_seconds() - night.began)
        self._until = self._clock.seconds() + self._settings.seconds - elapsed
        self._recorder = self._recorder_of(night.name)
        todo = self._todo(night.name)
        done = len(self._settings.rows) - len(todo)
        self._listen(NightBegan(night=night.name, rows=len(todo), done=done))
        rows = [row for row in todo if not self._is_in_trouble(row)]
        alone = [row for row in rows if times_by_our_clock(row.words)]
        self._waiting = len(rows)
        with ThreadPoolExecutor(max_workers=self._settings.at_a_time) as pool:
            try:
                self._do(pool, [r for r in rows if r not in alone], self._settings.at_a_time)
                self._do(pool, alone, 1)
            except BaseException:
                self._runner.stop()
                raise
        if not self._left:
            self._history.end(night.name, self._clock.wall_seconds())
        return NightEnd(night=night, left=tuple(self._left))

    def _recorder_of(self, night: str) -> Recorder:
        settings = self._settings
        return Recorder(self._history, night, version=settings.version, commit=settings.commit)

    def _this_night(self) -> Night:
        """The one that was begun and not ended, while it has time; else a new one."""
        nights, now = self._history.nights(), self._clock.wall_seconds()
        last = nights[-1] if nights else None
        if last is not None and last.ended is None:
            if now - last.began < self._settings.seconds:
                return last
            self._give_up(last)
        night = self._history.begin(now)
        if words := clock_went_back(night, last):
            self._listen(NightNotice(text=words))
        return night

    def _give_up(self, night: Night) -> None:
        """End a night that nobody has continued in its time."""
        why = f"it was stopped, and not continued within its {self._settings.seconds:g} s"
        recorder = self._recorder_of(night.name)
        for row in self._todo(night.name):
            recorder.without(row.row, why)
        self._history.end(night.name, self._clock.wall_seconds(), why)
        self._listen(NightNotice(text=f"night {night.name}: {why}"))

    def _todo(self, night: str) -> list[ZooRow]:
        """The rows without a verdict, those first that were not measured for longest."""
        done = {each.row for each in self._history.verdicts(night=night)}
        places = {each.name: at for at, each in enumerate(self._history.nights())}
        last: dict[Row, int] = {}
        for sample in self._history.samples(last=_REMEMBERED):
            if sample.night != night:
                last[sample.row] = max(last.get(sample.row, -1), places[sample.night])
        todo = [row for row in self._settings.rows if row.row not in done]
        return sorted(todo, key=lambda row: last.get(row.row, -1))

    def _is_in_trouble(self, row: ZooRow) -> bool:
        """Whether the row cannot be measured; then that is its verdict."""
        why = row.trouble() or _target_trouble(row)
        if why:
            self._begun += 1
            self._tell(self._recorder.without(row.row, why))
        return bool(why)

    def _do(self, pool: ThreadPoolExecutor, rows: Sequence[ZooRow], at_a_time: int) -> None:
        """Measure rows, so many at a time; each is recorded as it ends, here."""
        waiting, live = deque(rows), dict[Future[RowEnd], tuple[ZooRow, float]]()
        while waiting or live:
            while waiting and len(live) < at_a_time:
                row = waiting.popleft()
                begun = self._begin(pool, row, at_a_time)
                self._waiting -= 1
                if begun is not None:
                    live[begun] = row, self._clock.seconds()
            for ended in wait(live, return_when=FIRST_COMPLETED).done:
                row, began = live.pop(ended)
                self._take(row, ended, began)

    def _begin(
        self, pool: ThreadPoolExecutor, row: ZooRow, at_a_time: int
    ) -> Future[RowEnd] | None:
        """The row's process, where there is time for it."""
        left = self._until - self._clock.seconds()
        if self._stop.is_requested:
            self._leave(row, "interrupted")
            return None
        if left <= 0:
            why = f"the night's {self._settings.seconds:g} s were over before it began"
            self._tell(self._recorder.without(row.row, why))
            return None
        self._begun += 1
        self._listen(RowBegan(row=row.row, number=self._begun))
        folder = row_folder(self._settings.folder, self._night.name, row.row)
        adopted = self._recorder.adopted(row.row)
        known = () if adopted is None else self._history.schedules(adopted.schedules)
        share = _SEARCHING * left * at_a_time / max(self._waiting, at_a_time)
        search = SearchPart(
            trials=row.search.trials,
            seconds=max(1.0, min(row.search.seconds, share)),
            seed=self._number,
            least_gain=row.search.least_gain,
            records=self._settings.folder / RECORDS,
        )
        words = row_words(
            row, folder.given, folder.out, search=search, compiling=self._settings.compiling
        )
        command = python_command("-m", "driver.cli", *words)

        def measured() -> RowEnd:
            folder.give(known)
            if folder.is_done(searched=bool(search.trials)):
                return kept_end(folder.path) or RowEnd(code=0)
            return self._runner.run(command, folder.log, left)

        return pool.submit(measured)

    def _take(self, row: ZooRow, ended: Future[RowEnd], began: float) -> None:
        """Keep what came of a row's process."""
        folder = row_folder(self._settings.folder, self._night.name, row.row)
        try:
            end = ended.result()
            why = "interrupted" if end.is_stopped and self._stop.is_requested else ""
            if end.code == _GOES_ON and not end.is_stopped:
                why = end.said or "it can be continued"
            if why:
                self._leave(row, why)
                return
            keep_end(folder.path, end)
            recorded = self._recorder.keep(row, folder, self._why(end))
        except DiskError as error:  # What was measured is in the row's folder.
            self._leave(row, error.what)
            return
        except InfraError as error:
            recorded = self._recorder.without(row.row, error.what)
        self._tell(recorded, self._clock.seconds() - began)

    def _why(self, end: RowEnd) -> str:
        """Why a row's process has left nothing."""
        if end.is_stopped:
            return f"the night's {self._settings.seconds:g} s were over before it was measured"
        if end.code < 0:
            return f"its process was ended by signal {-end.code}"
        return end.said or f"its process ended with exit code {end.code}, and left no program"

    def _tell(self, recorded: Recorded, seconds: float = 0.0) -> None:
        self._listen(RowDone(judged=recorded.judged, samples=recorded.samples, seconds=seconds))
        for note in recorded.notes:
            self._listen(NightNotice(text=f"{recorded.judged.row}: {note}"))

    def _leave(self, row: ZooRow, why: str) -> None:
        self._left.append(row.row)
        self._listen(RowLeft(row=row.row, why=why))


def _target_trouble(row: ZooRow) -> str:
    try:
        times_by_our_clock(row.words)
    except TargetError as error:
        return error.what
    return ""
