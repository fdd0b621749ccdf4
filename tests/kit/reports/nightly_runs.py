"""Rows of a zoo without any process: runs that leave what `tilefarm tune` leaves, at once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from kit.search.stand_ins import SIM, toy_workload
from tilefarm.digest import Digest
from tilefarm.errors import DiskError
from tilefarm.trace import Step, Trace

from driver.jobs.nightly.night.row_process import RowEnd
from driver.tune.chosen_schedules import ChosenSchedule, read_schedules, schedules_text

CODE = Digest.of(b"code").hex


def with_tile(tile: int) -> tuple[ChosenSchedule, ...]:
    """The schedules of a network of one workload."""
    trace = Trace((Step("tile", (tile,)),))
    return (ChosenSchedule(workload=toy_workload(), trace=trace, point=(("tile", tile),)),)


def tile_of(schedules: Sequence[ChosenSchedule]) -> int:
    """What `with_tile` was given; 1 where nothing was."""
    return dict(schedules[0].point)["tile"] if schedules else 1


@dataclass(slots=True)
class StandInRows:
    """Runs rows at once; tile 4 takes a quarter of the cycles of tile 1.

    Attributes:
        cycles: of tile 1, of tonight's code.
        finds: the tile that a search finds for a model; None: nothing better.
        ends: how the processes of models end that leave nothing.
        full: models that meet a full disk, once each.
        seconds: (p10, median, p90) by the clock in place of cycles.
        measured: how often each model and pass was measured.
        asked: the commands.
        before: is called with the model before anything is measured.
        chosen: the schedules of a tile.
    """

    cycles: int = 8000
    finds: Callable[[str], int | None] = lambda model: None
    ends: dict[str, RowEnd] = field(default_factory=dict)
    full: set[str] = field(default_factory=set)
    seconds: tuple[float, float, float] | None = None
    answers: str = "answers"
    measured: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: list[Sequence[str]] = field(default_factory=list)
    before: Callable[[str], None] = lambda model: None
    chosen: Callable[[int], tuple[ChosenSchedule, ...]] = with_tile
    stopped: bool = False
    beside: list[int] = field(default_factory=list)
    _live: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, command: Sequence[str], log: Path, seconds: float) -> RowEnd:
        """See `RowRunner.run`."""
        assert seconds > 0
        assert log.parent.is_dir()
        said = dict(pairwise(command))
        model, out = said["tune"], Path(said["--out"])
        self.asked.append(command)
        self.before(model)
        with self._lock:
            self._live += 1
            self.beside.append(self._live)
        try:
            return self._run(model, out, Path(said["--schedules"]), int(said["--trials"]))
        finally:
            with self._lock:
                self._live -= 1

    def stop(self) -> None:
        """See `RowRunner.stop`."""
        self.stopped = True

    def _run(self, model: str, out: Path, given: Path, trials: int) -> RowEnd:
        if model in self.ends:
            return self.ends[model]
        if model in self.full:
            self.full.remove(model)
            raise DiskError(f"{out}: cannot be written: No space left on device", "free some space")
        tile = tile_of(read_schedules(given))
        self._leave(model, out, tile, "known")
        if trials:
            found = self.finds(model)
            self._leave(model, out / "found", found or tile, "found", is_built=bool(found))
        return RowEnd(code=0)

    def _leave(
        self, model: str, folder: Path, tile: int, part: str, *, is_built: bool = True
    ) -> None:
        if (folder / "summary.json").exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        self.measured[model, part] += 1
        (folder / "schedules.json").write_text(schedules_text(self.chosen(tile)))
        (folder / "run.json").write_text(json.dumps({"settings": {"trials": 7, "judge": None}}))
        summary = self._summary(model, tile) if is_built else self._summary(model, 0)
        (folder / "summary.json").write_text(json.dumps(summary))

    def _summary(self, model: str, tile: int) -> dict[str, Any]:
        """As a run writes it; without a program for no tile."""
        summary: dict[str, Any] = {
            "interrupted": False,
            "code": CODE,
            "model_digest": Digest.of(model.encode()).hex,
            "target": "sim",
            "target_digest": SIM.digest.hex,
            "began": "2026-11-26T21:00:00+00:00",
            "total_seconds": 10.0,
            "network_cycles": self.cycles // tile if tile else None,
            "network_rounds": [],
            "device": {},
            "accuracy": None,
        }
        if not tile:
            return summary
        took: dict[str, Any] = {"cycles": self.cycles // tile}
        if self.seconds is not None:
            low, median, high = (each / tile for each in self.seconds)
            took = {"p10_seconds": low, "median_seconds": median, "p90_seconds": high}
            rounds = {"seconds": median, "low": low, "high": high, "control": 1e-3}
            summary["network_rounds"] = [rounds | {"control_code": "c"}] * 2
        layer = {"layer": "dense", "kernel": toy_workload().name, **took}
        first = {"name": "top-1", "against": "float", "device": 99.0}
        device = {"name": "sim0", "labels": "sandbox=x", "power": "", "processor": "p"}
        clock = "cycles" if self.seconds is None else "seconds"
        return summary | {
            "profile": {"layers": [layer], "network": took},
            "device": device | {"clock": clock, "runtime": "r"},
            "accuracy": {
                "answers": Digest.of(self.answers.encode()).hex,
                "differing": 0,
                "compared": [first],
            },
        }
