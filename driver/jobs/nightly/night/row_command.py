"""The command that measures a row: `tilefarm tune` with the row's options and given schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tilefarm.processors import THREADS
from tilefarm.target import Target, load_target

from driver.farm.settings import FarmSettings
from driver.jobs.nightly.zoo_file import ZooRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPart:
    """What a row's command searches, after the given schedules.

    Attributes:
        trials: candidates; 0: nothing is searched.
        seconds: after which the search ends.
        seed: of the search: another one each night, so that each looks elsewhere.
        least_gain: percent of the network's time; what could save less is not looked for.
        records: the schedules of all nights.
    """

    trials: int
    seconds: float
    seed: int
    least_gain: float
    records: Path

    @property
    def words(self) -> list[str]:
        """As options."""
        return [
            *("--trials", f"{self.trials}", "--search-seconds", f"{self.seconds:.1f}"),
            *("--search-seed", f"{self.seed}", "--least-gain", f"{self.least_gain:g}"),
            *("--records", str(self.records)),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilingPart:
    """Where a row's command compiles and measures, as far as the row does not say so itself.

    Attributes:
        processes: that compile, and simulated devices: its part of the machine's cores.
        ray: of a cluster that this machine is a node of, or "auto"; None: in processes of its own.
    """

    processes: int = 1
    ray: str | None = None

    def words(self, said: Sequence[str]) -> list[str]:
        """As options, without those that are said."""
        words: list[str] = []
        if not {"--ray", "--no-ray"} & {*said}:
            words += ["--no-ray"] if self.ray is None else ["--ray", self.ray]
        if not {"--ray", "--workers"} & {*said, *words}:
            words += ["--workers", f"{self.processes}"]
        if not {"--tracker", "--devices"} & {*said} and target_of(said).has_accelerator:
            words += ["--devices", f"{self.processes}"]
        return words


def target_of(words: Sequence[str]) -> Target:
    """The target that options of `tilefarm tune` say.

    Raises:
        TargetError: there is none of that name, or its file cannot be read.
    """
    said = dict(pairwise(words))
    name = said.get("--target", FarmSettings().target)
    threads = f"{THREADS}{said['--threads']}" if "--threads" in said else ""
    return load_target(f"{name}{threads}")


def times_by_our_clock(words: Sequence[str]) -> bool:
    """Whether the row is measured by this machine's clock: what runs beside it would show."""
    return "--tracker" not in words and not target_of(words).has_accelerator


def row_words(
    row: ZooRow,
    schedules: Path,
    out: Path,
    *,
    search: SearchPart | None = None,
    compiling: CompilingPart | None = None,
) -> list[str]:
    """What `tilefarm` is told to measure a row.

    Args:
        row: of the zoo, without fault.
        schedules: a file of those that it is built with.
        out: the output folder.
        search: what comes after it; None: nothing.
        compiling: where; None: as `tilefarm tune` does by itself.

    Raises:
        TargetError: there is no such target.
    """
    return [
        *("tune", row.model, *row.words),
        *(compiling.words(row.words) if compiling else ()),
        *("--schedules", str(schedules), "--out", str(out)),
        *(search.words if search else ("--trials", "0")),
    ]
