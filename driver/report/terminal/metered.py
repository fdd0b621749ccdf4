"""What a run tells, as numbers of its metrics."""

from __future__ import annotations

from tilefarm.watch import metrics as m
from tilefarm.watch.metrics import Metrics

from driver.report.terminal.ended import Shown
from driver.run_events import DeviceJoined, DeviceLeft, KnownWorkload, SearchBegan, Span, TrialEnded


class Meter:
    """Counts events; on one thread."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._held: set[str] = set()

    def __call__(self, event: Shown | Span) -> None:
        metrics = self._metrics
        match event:
            case SearchBegan(standings=standings):
                for workload, standing in standings.items():
                    self._best(workload, standing)
            case TrialEnded(status=status, workload=workload):
                metrics.add(m.TRIALS, status=status)
                self._best(workload, event)
            case DeviceJoined(device=device):
                self._hold(self._held | {device})
            case DeviceLeft(device=device, how=how):
                if how == "lost":
                    metrics.add(m.DEVICES_LOST, device=device)
                self._hold(self._held - {device})
            case Span():
                self._span(event)
            case _:
                pass

    def _best(self, workload: str, known: KnownWorkload | TrialEnded) -> None:
        if known.best_cycles is not None:
            self._metrics.set(m.BEST_CYCLES, known.best_cycles, workload=workload)
        if known.best_seconds is not None:
            self._metrics.set(m.BEST_SECONDS, known.best_seconds, workload=workload)

    def _hold(self, devices: set[str]) -> None:
        self._held = devices
        self._metrics.set(m.HELD_DEVICES, len(devices))

    def _span(self, span: Span) -> None:
        seconds = span.end_seconds - span.begin_seconds
        match span.kind:
            case "compile":
                self._metrics.observe(m.COMPILE_SECONDS, seconds)
            case "run":
                self._metrics.observe(m.DRIVER_RUN_SECONDS, seconds, device=span.lane)
            case "transfer":
                self._metrics.observe(m.TRANSFER_SECONDS, seconds, device=span.lane)
