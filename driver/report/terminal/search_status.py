"""What has happened so far in a search, for the views that show it as it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilefarm.printable import printable

from driver.report.cost import NOT_KNOWN, Cost, gain, total
from driver.report.terminal.ended import Shown
from driver.run_events import DeviceJoined, DeviceLeft, KnownWorkload, SearchBegan, TrialEnded


@dataclass(slots=True)
class WorkloadLine:
    """A workload's line while the search runs."""

    count: int
    trials: int = 0
    failed: int = 0
    default: Cost = NOT_KNOWN
    best: Cost = NOT_KNOWN


def _row(count: int, standing: KnownWorkload | None) -> WorkloadLine:
    if standing is None:
        return WorkloadLine(count)
    return WorkloadLine(
        count,
        trials=standing.trials,
        failed=standing.failed,
        default=Cost(standing.default_cycles, standing.default_seconds),
        best=Cost(standing.best_cycles, standing.best_seconds),
    )


@dataclass(slots=True)
class SearchStatus:
    """Rows of workloads, devices, and how far the trials are."""

    rows: dict[str, WorkloadLine] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)
    done: int = 0
    total: int = 0
    began: float = 0.0
    now: float = 0.0
    earlier: int = 0

    def take(self, event: Shown) -> None:
        """Take note of an event."""
        match event:
            case SearchBegan():
                self.rows = {
                    name: _row(count, event.standings.get(name)) for name, count in event.workloads
                }
                self.total, self.done, self.earlier = event.trials, event.done, event.done
                self.began = self.now = event.seconds
            case TrialEnded():
                row = self.rows[event.workload]
                row.trials += 1
                row.failed += event.status != "ok"
                row.default = Cost(event.default_cycles, event.default_seconds)
                row.best = Cost(event.best_cycles, event.best_seconds)
                self.done, self.total, self.now = event.number, event.total, event.seconds
            case DeviceJoined():
                self.devices[event.device] = event.sandbox
            case DeviceLeft():
                self.devices.pop(event.device, None)
            case _:
                pass

    def line(self) -> str:
        """Progress in one line."""
        elapsed = self.now - self.began
        fresh = self.done - self.earlier
        rate = f"{fresh / elapsed:.1f}/s" if elapsed > 0 and fresh else "-"
        failed = sum(row.failed for row in self.rows.values())
        text = f"trials {self.done}/{self.total}  {rate}  failed {failed}"
        if gain := self.gain():
            text += f"  {gain:.2f}x faster than untuned"
        return f"{text}  devices {', '.join(map(printable, self.devices)) or 'none yet'}"

    def gain(self) -> float | None:
        """Default by best over the network so far."""
        rows = self.rows.values()
        return gain(
            total((row.count, row.default) for row in rows).number,
            total((row.count, row.best) for row in rows).number,
        )
