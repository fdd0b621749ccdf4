"""What became of compile jobs, told to the log of the process that compiled them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilefarm.artifact import BuildFailure
from tilefarm.measurement import Status
from tilefarm.watch.log import Level, LineLog, Log, LogFormat, LogStyle

if TYPE_CHECKING:
    from compile_worker.worker import Result


def compile_log(form: str, level: str) -> Log:
    """The log of a process that compiles; the words are those of a `LogStyle`."""
    return LineLog("compile", style=LogStyle(format=LogFormat(form), level=Level[level]))


def style_words(style: LogStyle) -> tuple[str, str]:
    """The words that give a process of ours such a log."""
    return style.format.value, style.level.name


def tell(log: Log, results: Sequence[Result]) -> None:
    """A line for each result, by the candidate's digest."""
    for result in results:
        candidate, seconds = result.job.short, result.build_seconds
        if isinstance(result, BuildFailure):
            log(
                "compiled",
                candidate=candidate,
                status=result.status.value,
                seconds=seconds,
                stage=result.stage,
                why=result.why,
            )
        else:
            log(
                "compiled",
                candidate=candidate,
                artifact=result.digest.short,
                status=Status.OK.value,
                seconds=seconds,
            )
