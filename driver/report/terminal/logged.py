"""What a run tells, as lines of its log; trials and their stories have a log of their own."""

from __future__ import annotations

from tilefarm.watch.log import Level, Log

from driver.report.terminal.ended import Ended, Shown
from driver.run_events import (
    DeviceJoined,
    DeviceLeft,
    Notice,
    SearchBegan,
    Span,
    StepBegan,
    StepEnded,
    TrialEnded,
)


def log_event(log: Log, event: Shown | Span) -> None:
    """One line for an event that is worth it."""
    match event:
        case StepBegan(step=step):
            log("step_began", level=Level.DEBUG, step=step)
        case StepEnded(step=step, detail=detail):
            log("step_ended", step=step, detail=detail)
        case SearchBegan(workloads=workloads, trials=trials, done=done):
            log("search_began", workloads=len(workloads), trials=trials, done=done)
        case DeviceJoined(device=device, sandbox=sandbox, runtime=runtime, clock=clock):
            log("device_joined", device=device, sandbox=sandbox, runtime=runtime, clock=clock)
        case DeviceLeft(device=device, why=why, how="lost"):
            log("device_left", level=Level.WARNING, device=device, why=why)
        case DeviceLeft(device=device, why=why, how=how):
            log(f"device_{how}", device=device, why=why)
        case Notice(text=text):
            log("notice", text=text)
        case Ended(summary=summary, seconds=seconds):
            log("ended", interrupted=summary.interrupted, seconds=seconds)
        case TrialEnded() | Span():
            pass
