"""Log lines of the servers: one event a line, `event=… key=value`, on a text stream."""

from __future__ import annotations

import json
import sys
from typing import Protocol, TextIO


class Log(Protocol):
    """Takes events; values are printed as they are, or quoted if they hold spaces."""

    def __call__(self, event: str, **fields: object) -> None: ...


class LineLog:
    """Writes each event as one line.

    Args:
        stream: where to; the process's stderr as it is at the time of the event when None.
        component: put first on every line.
    """

    def __init__(self, component: str, stream: TextIO | None = None) -> None:
        self._component = component
        self._stream = stream

    def __call__(self, event: str, **fields: object) -> None:
        words = [f"event={event}", f"component={_quoted(self._component)}"]
        words += [f"{key}={_quoted(value)}" for key, value in fields.items()]
        # One write for the whole line, so that lines of several threads do not mix.
        (self._stream or sys.stderr).write(" ".join(words) + "\n")


def _quoted(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    plain = text and text.isprintable() and not set(text) & set(' "=')
    return text if plain else json.dumps(text)
