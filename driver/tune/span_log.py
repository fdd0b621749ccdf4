"""What every session of a run did, and which calls it made: lines in a file of the run's folder.

The trace and the report show all sessions, so a repeated or resumed command must know what earlier
ones did. Each line is written as what it tells of ends, so a session that was killed has told it.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TextIO

from tilefarm.errors import OutputError
from tilefarm.rpc.served_call import TRAILER, Exchange, served_in
from tilefarm.watch.trace_context import TraceContext

from driver.atomic_write import write_atomically
from driver.report.aligned import AlignedSpan, aligned
from driver.run_events import Span

_MOST_CALLS: Final = 50_000
"""The trace of a very long run has its last calls; the file never has more than twice as many."""
_DIGITS: Final = 5
"""Of wall seconds that are the same after an origin was taken from them and added again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One run of a command on the folder; its spans count seconds from its begin."""

    run: str
    began_seconds: float
    """Wall time."""
    spans: list[Span] = field(default_factory=list)


class SpanLog:
    """The sessions of a folder, of which this is the last; thread-safe.

    Args:
        run: the id of this session.
        began_seconds: its wall time.
        most_calls: how many calls of all sessions are kept.
    """

    def __init__(self, run: str, *, began_seconds: float, most_calls: int = _MOST_CALLS) -> None:
        self._own = Session(run=run, began_seconds=began_seconds)
        self._sessions = [self._own]
        self._calls: deque[tuple[Session, Exchange]] = deque(maxlen=most_calls)
        self._most_calls = most_calls
        self._calls_in_file = 0
        self._path: Path | None = None
        self._file: TextIO | None = None
        self._lock = threading.Lock()

    def open(self, path: Path, recorded: Sequence[Span] = ()) -> None:
        """Read what earlier sessions told, and go on behind it; what came before is not lost.

        A file that cannot be read or written costs the pictures what it would have held.

        Args:
            path: the file; made where there is none.
            recorded: spans in wall seconds that records hold; those that the file lacks, because it
                is gone or older than the records, are a session of their own.
        """
        with self._lock:
            earlier = SpanLog("", began_seconds=0.0, most_calls=self._most_calls)
            with contextlib.suppress(OSError):
                earlier._read(path)
            own_calls = [*self._calls]
            sessions = [*earlier._sessions[1:], self._own]
            self._sessions = [*_only_recorded(recorded, sessions), *sessions]
            self._stop_writing()
            self._calls.clear()
            self._calls.extend([*earlier._calls, *own_calls])
            self._path = path
            self._calls_in_file = earlier._calls_in_file
            self._append(
                [
                    _session_line(self._own),
                    *(_span_line(span) for span in self._own.spans),
                    *(_call_line(exchange) for _, exchange in own_calls),
                ]
            )

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            self._stop_writing()

    def span(self, span: Span) -> None:
        """Note something that the session did."""
        with self._lock:
            self._own.spans.append(span)
            self._write(_span_line(span))

    def call(self, exchange: Exchange) -> None:
        """Note a call that the session has made."""
        with self._lock:
            self._calls.append((self._own, exchange))
            self._calls_in_file += 1
            if self._file is not None and self._calls_in_file > 2 * self._most_calls:
                self._write_anew()
            else:
                self._write(_call_line(exchange))

    @property
    def began_seconds(self) -> float:
        """Wall time of the first session's begin, from which all pictures count."""
        return min(session.began_seconds for session in self._sessions)

    def spans(self) -> tuple[Span, ...]:
        """What all sessions did, in seconds since the first one began."""
        with self._lock:
            return tuple(
                _later(span, session.began_seconds - self.began_seconds)
                for session in self._sessions
                for span in session.spans
            )

    def calls(self) -> tuple[AlignedSpan, ...]:
        """What the farm's servers told of all sessions' calls, on the same clock.

        Each session is aligned by itself: a server's clock may have been set between two.
        """
        with self._lock:
            return tuple(
                span
                for _, calls in self._by_session()
                for span in aligned(calls, self.began_seconds)
            )

    def _read(self, path: Path) -> None:
        """Take in a file; lines that were cut off or damaged are left out."""
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                with contextlib.suppress(ValueError, TypeError, LookupError, RecursionError):
                    self._take(*json.loads(line))

    def _take(self, what: str, *values: Any) -> None:
        session = self._sessions[-1]
        match what, values:
            case "session", (str(run), float() | int() as began):
                self._sessions.append(Session(run=run, began_seconds=float(began)))
            case "span", (str(lane), str(kind), str(label), begin, end, str(candidate)):
                session.spans.append(
                    Span(
                        lane=lane,
                        kind=kind,
                        label=label,
                        begin_seconds=float(begin),
                        end_seconds=float(end),
                        candidate=candidate,
                    )
                )
            case "call", (str(method), sent, came, str(candidate), [*told]):
                served = served_in([(TRAILER, json.dumps(told).encode())])
                if served is None:
                    return
                exchange = Exchange(
                    method=method,
                    sent_seconds=float(sent),
                    came_seconds=float(came),
                    served=served,
                    work=TraceContext.of(session.run).about(candidate, ""),
                )
                self._calls.append((session, exchange))
                self._calls_in_file += 1

    def _write(self, line: str) -> None:
        if self._file is not None:
            try:
                self._file.write(line)
            except OSError:
                self._stop_writing()

    def _append(self, lines: list[str]) -> None:
        """Open the file at its end, which a kill may have left within a line, and add to it."""
        assert self._path is not None
        try:
            cut_off = self._path.exists() and not self._path.read_bytes().endswith(b"\n")
            self._file = self._path.open("a", encoding="utf-8", buffering=1)
            self._file.writelines(["\n"] * cut_off + lines)
        except OSError:
            self._stop_writing()

    def _write_anew(self) -> None:
        """Only what is kept, in a file that readers see old or new."""
        assert self._path is not None
        self._stop_writing()
        with contextlib.suppress(OutputError):
            write_atomically(self._path, "".join(self._all_lines()).encode())
            self._calls_in_file = len(self._calls)
            self._append([])

    def _all_lines(self) -> Iterator[str]:
        for session, calls in self._by_session():
            yield _session_line(session)
            yield from map(_span_line, session.spans)
            yield from map(_call_line, calls)

    def _by_session(self) -> Iterator[tuple[Session, list[Exchange]]]:
        calls: dict[int, list[Exchange]] = defaultdict(list)
        for session, exchange in self._calls:
            calls[id(session)].append(exchange)
        for session in self._sessions:
            yield session, calls[id(session)]

    def _stop_writing(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        self._file = None


def _only_recorded(recorded: Sequence[Span], sessions: Sequence[Session]) -> list[Session]:
    """One session of what the others do not tell, or none."""
    told = {
        (span.kind, round(span.begin_seconds + session.began_seconds, _DIGITS))
        for session in sessions
        for span in session.spans
    }
    news = [
        each for each in recorded if (each.kind, round(each.begin_seconds, _DIGITS)) not in told
    ]
    if not news:
        return []
    began = min(span.begin_seconds for span in news)
    spans = [_later(span, -began) for span in news]
    return [Session(run="", began_seconds=began, spans=spans)]


def _session_line(session: Session) -> str:
    return _line("session", session.run, session.began_seconds)


def _span_line(span: Span) -> str:
    return _line(
        "span",
        span.lane,
        span.kind,
        span.label,
        span.begin_seconds,
        span.end_seconds,
        span.candidate,
    )


def _call_line(exchange: Exchange) -> str:
    return _line(
        "call",
        exchange.method,
        exchange.sent_seconds,
        exchange.came_seconds,
        exchange.work.candidate,
        json.loads(exchange.served.to_bytes()),
    )


def _line(*words: object) -> str:
    return json.dumps(words, separators=(",", ":")) + "\n"


def _later(span: Span, seconds: float) -> Span:
    return replace(
        span,
        begin_seconds=span.begin_seconds + seconds,
        end_seconds=span.end_seconds + seconds,
    )
