"""Log lines of every process: one event a line, as `key=value` words or as a JSON object.

Keys mean the same everywhere: `run`, `candidate` (digest of the compile job), `artifact` (digest of
the object), `lease`, `fence`, `device`, `user`. Whatever work the process is doing for somebody
(`tilefarm.watch.trace_context`) says its run and its candidate on each line. Secrets are never
fields.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, IntEnum
from typing import Final, Protocol

from tilefarm.clock import Clock, SystemClock
from tilefarm.watch.trace_context import current_context

LONGEST_VALUE: Final = 4000
"""Characters of one value of a line; of longer ones, the beginning and the end are written."""


class Level(IntEnum):
    """How much an event matters: to follow a fault, to know what goes on, to look, to act."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


class LogFormat(Enum):
    """Words for people, objects for machines."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStyle:
    """How lines are written, and which: events below `level` are not."""

    format: LogFormat = LogFormat.TEXT
    level: Level = Level.INFO

    @property
    def words(self) -> tuple[str, ...]:
        """The options that give a process of ours this style."""
        return ("--log-format", self.format.value, "--log-level", self.level.name.lower())


PLAIN: Final = LogStyle()


class Log(Protocol):
    """Takes events."""

    def __call__(self, event: str, *, level: Level = Level.INFO, **fields: object) -> None: ...


class Sink(Protocol):
    """Where lines go; a text stream is one."""

    def write(self, text: str, /) -> object: ...


class LineLog:
    """Writes each event as one line.

    Args:
        component: which process or part of one speaks.
        stream: where to; the process's stderr as it is at the time of the event when None.
        style: of the lines.
        clock: dates them.
    """

    def __init__(
        self,
        component: str,
        stream: Sink | None = None,
        *,
        style: LogStyle = PLAIN,
        clock: Clock | None = None,
    ) -> None:
        self._component = component
        self._stream = stream
        self._style = style
        self._clock = clock or SystemClock()

    def __call__(self, event: str, *, level: Level = Level.INFO, **fields: object) -> None:
        if level < self._style.level:
            return
        at = datetime.fromtimestamp(self._clock.wall_seconds(), UTC)
        head = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level.name.lower(),
            "event": event,
            "component": self._component,
        }
        work = current_context()
        said = {key: _cut(value) for key, value in fields.items()}
        line = _LINES[self._style.format]({**head, **(work.fields if work else {}), **said})
        # One write for the whole line, so that lines of several threads do not mix. A line that a
        # full disk does not take is lost; that must not end whoever logs.
        with contextlib.suppress(OSError):
            (self._stream or sys.stderr).write(line + "\n")


def _cut(value: object) -> object:
    if value is None or isinstance(value, int | float):
        return value
    text = str(value)
    if len(text) <= LONGEST_VALUE:
        return value
    half = LONGEST_VALUE // 2
    return f"{text[:half]} ... {text[-half:]}"


def _text_line(fields: Mapping[str, object]) -> str:
    return " ".join(f"{key}={_quoted(value)}" for key, value in fields.items())


def _json_line(fields: Mapping[str, object]) -> str:
    return json.dumps(dict(fields), default=str)


_LINES: Final = {LogFormat.TEXT: _text_line, LogFormat.JSON: _json_line}


def _quoted(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    plain = text.isprintable() and not (" " in text or '"' in text or "=" in text)
    return text if text and plain else json.dumps(text)
