"""Compiles that are kept with a run, to be repeated: those that crashed or hung, and the best ones.

One JSON file each, named by the digest of its content: the job, how it ended, and of a failure the
IR that the last good step left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.artifact import BuildFailure
from tilefarm.digest import Digest, canonical_json
from tilefarm.documents import decoded
from tilefarm.errors import DataError, TilefarmError
from tilefarm.measurement import Status
from tilefarm.system_errors import unwritable

from compile_worker.progress_file import LastStep, ProgressFile
from driver.atomic_write import write_atomically
from driver.farm.compiling.job_json import job_document, job_from_document

if TYPE_CHECKING:
    from compile_worker.worker import Job

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproducer:
    """One compile that can be repeated.

    Attributes:
        status: how it ended.
        why: of a failure, the reason.
        last: the last step that ended; empty when nothing is known, or all did.
    """

    job: Job
    status: Status
    why: str = ""
    last: LastStep = field(default_factory=LastStep)

    @property
    def content(self) -> bytes:
        """The file."""
        return canonical_json(
            {
                "schema": SCHEMA,
                "job": job_document(self.job),
                "status": self.status.value,
                "why": self.why,
                "after": self.last.name,
                "ir": self.last.ir,
            }
        ).encode()

    @property
    def digest(self) -> Digest:
        """Identity of the record, which is not that of its job."""
        return Digest.of(self.content)

    @classmethod
    def from_content(cls, content: bytes) -> Reproducer:
        """The record of a file.

        Raises:
            ValueError, KeyError, TypeError, TilefarmError: it is not one.
        """
        document = decoded(content)
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}, this version reads {SCHEMA}")
        return cls(
            job=job_from_document(document["job"]),
            status=Status(document["status"]),
            why=document["why"],
            last=LastStep(document["after"], document["ir"]),
        )


class Reproducers:
    """A folder of kept compiles; made when something is put into it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()  # compile processes may be somewhere else

    def trail(self, job: Job) -> ProgressFile:
        """Where a compile of the job may leave its trail."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return ProgressFile(self._folder / f".trail-{job.digest.hex}")

    def keep_failure(self, job: Job, failure: BuildFailure, last: LastStep) -> BuildFailure:
        """The failure with the step that it happened in, and the digest of what was kept of it.

        Raises:
            OutputError: nothing can be written.
        """
        kept = Reproducer(job=job, status=failure.status, why=failure.why, last=last)
        stage = last.next if last.name else failure.stage
        return replace(failure, stage=stage, kept=self.keep(kept))

    def keep(self, kept: Reproducer) -> Digest:
        """Write a record; the same one twice is one file.

        Raises:
            OutputError: it cannot be written.
        """
        file = self._folder / f"{kept.digest.hex}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self._folder, error) from None
        write_atomically(file, kept.content)
        return kept.digest

    def find(self, digest: str) -> Iterator[Reproducer]:
        """The records whose own digest, or whose job's, begins so.

        Raises:
            DataError: a file in the folder is not what its name promises.
        """
        for file in sorted(self._folder.glob("*.json")):
            kept = _read(file)
            if file.stem.startswith(digest) or kept.job.digest.hex.startswith(digest):
                yield kept

    def __iter__(self) -> Iterator[Reproducer]:
        return self.find("")


def _read(file: Path) -> Reproducer:
    try:
        content = file.read_bytes()
        if Digest.of(content).hex != file.stem:
            raise ValueError("its content is not what its name says")
        return Reproducer.from_content(content)
    except (OSError, ValueError, KeyError, TypeError, TilefarmError) as error:
        raise DataError(f"{file}: not a kept compile: {error}", "delete it") from None
