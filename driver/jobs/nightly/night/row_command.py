"""The command that measures a row: `tilefarm tune` with the row's options and given schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilefarm.interpreter import python_command

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


def row_command(
    row: ZooRow,
    schedules: Path,
    out: Path,
    *,
    search: SearchPart | None = None,
    farm: Sequence[str] = (),
) -> list[str]:
    """The words of the process that measures a row.

    Args:
        row: of the zoo, without fault.
        schedules: a file of those that it is built with.
        out: the output folder.
        search: what comes after it; None: nothing.
        farm: options of where it compiles, where the row does not say so itself.
    """
    return python_command(
        *("-m", "driver.cli", "tune", row.model, *row.words, *_unsaid(farm, row.words)),
        *("--schedules", str(schedules), "--out", str(out)),
        *(search.words if search else ("--trials", "0")),
    )


def _unsaid(options: Sequence[str], said: Sequence[str]) -> list[str]:
    """Those of the options, each `--name=value` or `--name`, that are not said already."""
    names = {word.partition("=")[0] for word in said}
    return [each for each in options if each.partition("=")[0] not in names]
