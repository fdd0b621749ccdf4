"""A night from its begin to its page: the history alone for it, its rows, what is published."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tilefarm.clock import Clock
from tilefarm.plural import plural

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.night.code_version import checkout, commit, version
from driver.jobs.nightly.night.events import NightBegan, NightEvent, NightNotice, RowDone
from driver.jobs.nightly.night.night_run import Listener, NightRun, NightSettings
from driver.jobs.nightly.night.publishing import Outputs, is_published, publish
from driver.jobs.nightly.night.row_folder import drop_folders
from driver.jobs.nightly.night.row_process import RowProcesses, RowRunner
from driver.jobs.nightly.records import Night, Row
from driver.jobs.nightly.zoo_file import Zoo
from driver.report.terminal.interrupts import Interrupts
from driver.stop_token import StopToken

HISTORY: Final = "history.sqlite"
"""The history, in the folder of a zoo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredNight:
    """What came of a night: rows that are left to do, and whether somebody has to look."""

    left: Sequence[Row]
    fails: bool


def measure_night(
    settings: NightSettings,
    zoo: Zoo,
    outputs: Outputs,
    listen: Listener,
    *,
    clock: Clock,
    runner: RowRunner | None = None,
) -> MeasuredNight:
    """Measure, judge, keep and publish; goes on where a night was stopped.

    Args:
        settings: what is done; the code's version is added here.
        zoo: all of its rows are on the page, measured tonight or not.
        outputs: what is published beside it.
        listen: is told as it goes on.
        runner: of the rows' processes; None: real ones.

    Raises:
        OutputError: the history is another zoo's, another night of it is under way, or the disk is
            full: the same command continues.
    """
    runner = runner or RowProcesses()
    here, stop = checkout(), StopToken()
    settings = replace(settings, version=version(), commit=commit(here))
    with (
        tempfile.TemporaryDirectory(prefix="tilefarm-nightly-") as scratch,
        History(settings.folder / HISTORY, zoo.name) as history,
        history.alone(),
        Interrupts(stop, Path(scratch)) as interrupts,
    ):
        stop.connect(runner.stop)
        nights = history.nights()
        last = nights[-1] if nights else None
        left: Sequence[Row] = ()
        if last is None or _is_due(last, settings, clock.wall_seconds()):
            run = NightRun(settings, history, runner, stop=stop, clock=clock, listen=listen)
            ended = run.run()
            last, left = ended.night, ended.left
        else:
            for event in _retold(history, last):
                listen(event)
        interrupts.closing()
        if not left:
            _finish(history, last.name, settings.folder, zoo, outputs, listen, here)
        fails = any(each.verdict.fails for each in history.verdicts(night=last.name))
    return MeasuredNight(left=left, fails=fails)


def _is_due(last: Night, settings: NightSettings, now: float) -> bool:
    """Whether there is something to measure: the rest of a night, or the next one.

    One that was killed before it was published is published first.
    """
    if last.ended is None:
        return True
    is_over = not 0 <= now - last.began < settings.every_seconds
    return is_over and is_published(settings.folder, last)


def _retold(history: History, night: Night) -> Iterator[NightEvent]:
    """What a night has said that is over."""
    verdicts = history.verdicts(night=night.name)
    yield NightBegan(night=night.name, rows=0, done=len(verdicts))
    for judged in verdicts:
        yield RowDone(judged=judged)


def _finish(
    history: History,
    night: str,
    folder: Path,
    zoo: Zoo,
    outputs: Outputs,
    listen: Listener,
    here: Path | None,
) -> None:
    """Publish a night that is done, and drop the folders of nights that are too old."""
    rows = [each.row for each in zoo.rows]
    for event in publish(history, night, rows, folder, outputs, here):
        listen(event)
    kept = [each.name for each in history.nights()[-zoo.night.keep :]]
    if dropped := drop_folders(folder, kept):
        listen(NightNotice(text=f"the folders of {plural(dropped, 'older night')} are removed"))
