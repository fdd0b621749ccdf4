"""What has happened so far in a search, for the views that show it as it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from driver.terminal.events import (
    DeviceJoined,
    DeviceLeft,
    Progress,
    SearchBegan,
    Standing,
    TrialEnded,
)


@dataclass(slots=True)
class Row:
    """A workload's line while the search runs."""

    count: int
    trials: int = 0
    failed: int = 0
    default: int | None = None
    best: int | None = None


def _row(count: int, standing: Standing | None) -> Row:
    if standing is None:
        return Row(count)
    return Row(
        count,
        trials=standing.trials,
        failed=standing.failed,
        default=standing.default_cycles,
        best=standing.best_cycles,
    )


@dataclass(slots=True)
class Board:
    """Rows of workloads, devices, and how far the trials are."""

    rows: dict[str, Row] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)
    done: int = 0
    total: int = 0
    began: float = 0.0
    now: float = 0.0
    earlier: int = 0

    def take(self, event: Progress) -> None:
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
                row.best = event.best_cycles
                row.default = event.default_cycles
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
        return f"{text}  devices {', '.join(self.devices) or 'none yet'}"

    def gain(self) -> float | None:
        """Default by best cycles over the network so far."""
        default = best = 0
        for row in self.rows.values():
            if row.default is None or row.best is None:
                return None
            default += row.count * row.default
            best += row.count * row.best
        return default / best if best else None
