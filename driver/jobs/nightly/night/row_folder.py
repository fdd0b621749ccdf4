"""The folder of a row in a night: what its process is given, what it writes, how it ended."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.system_errors import unwritable

from driver.atomic_write import write_atomically
from driver.jobs.nightly.night.measured_run import is_whole
from driver.jobs.nightly.night.row_process import kept_end
from driver.jobs.nightly.records import ChosenSchedule, Row
from driver.jobs.nightly.words import night_file, row_file
from driver.tune.chosen_schedules import schedules_text

NIGHTS: Final = "nights"
"""The folder with those of all nights, in that of the zoo."""
_NIGHT: Final = re.compile(r"\d{4}-\d\d-\d\dt\d{6}z")
"""The name of one of them; what else lies there is somebody's."""


@dataclass(frozen=True, slots=True)
class RowFolder:
    """One of them; made by `give`."""

    path: Path

    @property
    def out(self) -> Path:
        """The output folder of `tilefarm tune`."""
        return self.path / "run"

    @property
    def found(self) -> Path:
        """That of the search which goes on from the known schedules."""
        return self.out / "found"

    @property
    def given(self) -> Path:
        """The known schedules."""
        return self.path / "schedules.json"

    @property
    def log(self) -> Path:
        """What the process prints."""
        return self.path / "tune.log"

    def give(self, schedules: Iterable[ChosenSchedule]) -> None:
        """Make the folder, with the schedules that the process builds from.

        Raises:
            OutputError: it cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.path, error) from None
        if not self.given.exists():
            write_atomically(self.given, schedules_text(schedules).encode())

    def is_done(self, *, searched: bool) -> bool:
        """Whether the process has nothing left to do, though the night may not know it yet."""
        if kept_end(self.path) is not None:
            return True
        return is_whole(self.out) and (not searched or is_whole(self.found))


def night_folder(folder: Path, night: str) -> Path:
    """That of a night, in a zoo's folder."""
    return folder / NIGHTS / night_file(night).removesuffix(".html")


def row_folder(folder: Path, night: str, row: Row) -> RowFolder:
    """That of a row."""
    return RowFolder(night_folder(folder, night) / row_file(row).removesuffix(".html"))


def drop_folders(folder: Path, kept: Collection[str]) -> int:
    """Remove the folders of all nights but these; how many. What cannot be removed stays."""
    keep = {night_folder(folder, night) for night in kept}
    try:
        there = sorted((folder / NIGHTS).iterdir())
    except OSError:
        return 0
    nights = [path for path in there if _NIGHT.fullmatch(path.name) and path.is_dir()]
    old = [path for path in nights if path not in keep]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return sum(not path.exists() for path in old)
