"""What watches a run: its log, its metrics, and the calls that it makes, for the trace."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from io import FileIO
from pathlib import Path

from tilefarm.clock import Clock
from tilefarm.rpc.timing import Watch, watching
from tilefarm.system_errors import unwritable
from tilefarm.watch.log import Level, LineLog
from tilefarm.watch.metrics import RUN_METRICS
from tilefarm.watch.operations import Operations
from tilefarm.watch.prometheus import metrics_at
from tilefarm.watch.trace_context import TraceContext, doing

from driver.report.terminal.ended import Ended, Listener, Shown
from driver.report.terminal.logged import log_event
from driver.report.terminal.metered import Meter
from driver.run_events import Notice, Span
from driver.tune.span_log import SpanLog
from driver.tune.stall_reporter import StallReporter


class LogFile:
    """A text file that is opened when its folder is known; what came before is not lost.

    Nothing is held back, so what a full disk did not take is gone, and is not written when it is
    closed: a log is worth less than the run.
    """

    def __init__(self) -> None:
        self._early: list[str] = []
        self._file: FileIO | None = None

    def open(self, path: Path) -> None:
        """From now on it is this one; appended to.

        Raises:
            OutputError: it cannot be written.
        """
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise unwritable(path, error) from None
        for text in self._early:
            self.write(text)
        self._early.clear()

    def write(self, text: str) -> None:
        if self._file is None:
            self._early.append(text)
            return
        with contextlib.suppress(OSError):
            self._file.write(text.encode(errors="backslashreplace"))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Watched:
    """A listener that tells whoever listens, and writes and counts as well; thread-safe.

    Args:
        listen: who is told.
        log: gets a line for each event.
        meter: counts them.
        file: behind the log.
        spans: keeps what the trace and the report show.
        clock: tells how long nothing was said.
        wall_origin: from which the run's seconds are counted.
    """

    def __init__(
        self,
        listen: Listener,
        log: LineLog,
        meter: Meter,
        file: LogFile,
        spans: SpanLog,
        *,
        clock: Clock,
        wall_origin: float,
    ) -> None:
        self._listen = listen
        self._log = log
        self._meter = meter
        self._file = file
        self._origin = wall_origin
        self._clock = clock
        self.spans = spans
        self._lock = threading.Lock()
        self._silence = StallReporter(self._say, clock=clock)

    def __call__(self, event: Shown | Span) -> None:
        if isinstance(event, Ended):
            self._silence.close()  # with --json the summary is the last line
        with self._lock:
            self._listen(event)
            self._meter(event)
            log_event(self._log, event)
        if isinstance(event, Span):
            self.spans.span(event)
        else:
            self._silence.heard()

    def close(self) -> None:
        """Nothing more is said for being quiet."""
        self._silence.close()

    def waiting(self, reason: Callable[[], str]) -> AbstractContextManager[None]:
        """Within, this is told when nothing else is for a while; see `Silence`."""
        return self._silence.waiting(reason)

    def write_into(self, folder: Path) -> None:
        """Now it is known where the log lies."""
        self._file.open(folder / "driver.log")

    def _say(self, text: str) -> None:
        self(Notice(text=text, seconds=self._clock.wall_seconds() - self._origin))


@contextmanager
def watched(
    operations: Operations, listen: Listener, *, run_id: str, clock: Clock, wall_origin: float
) -> Iterator[Watched]:
    """Watch what is done within the block, which is this run's work.

    Raises:
        SettingsError: the metrics cannot be served.
    """
    file = LogFile()
    log = LineLog("driver", file, style=operations.style, clock=clock)

    def where(event: str, *, level: Level = Level.INFO, **fields: object) -> None:
        log(event, level=level, **fields)
        text = f"{event}: http://{fields['address']}/metrics"
        listen(Notice(text=text, seconds=clock.wall_seconds() - wall_origin))

    with ExitStack() as owned:
        owned.callback(file.close)
        owned.enter_context(doing(TraceContext.of(run_id)))
        metrics = owned.enter_context(metrics_at(operations.metrics, RUN_METRICS, log=where))
        spans = SpanLog(run_id, began_seconds=wall_origin)
        owned.callback(spans.close)
        watch = Watched(
            listen, log, Meter(metrics), file, spans, clock=clock, wall_origin=wall_origin
        )
        owned.callback(watch.close)
        owned.enter_context(watching(Watch(spans.call, clock)))
        yield watch
