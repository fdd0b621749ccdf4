"""The output folder of a run: whose it is, and files that are there whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from tilefarm.digest import Digest
from tilefarm.documents import read_json
from tilefarm.errors import OutputError
from tilefarm.system_errors import unwritable

from driver.atomic_write import drafts, write_atomically
from driver.program.folder import program_files
from driver.program.model import NetworkProgram
from driver.report.summary import RunSummary, brief

SCHEMA: Final = 1

_RUN_FILE: Final = "run.json"
_ELSEWHERE: Final = "choose another folder with --out"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """What makes two runs the same run, so that one may continue the other.

    Only another model or target keeps them apart; seed and proposer are noted for people.
    """

    model: Digest
    target: Digest
    seed: int
    proposer: str

    def differences(self, other: RunIdentity) -> list[str]:
        """What differs, in words."""
        words = {"model": "another model", "target": "another target"}
        return [text for name, text in words.items() if getattr(self, name) != getattr(other, name)]


class OutputFolder:
    """The folder that a run writes to.

    Made when it is opened; belongs to the first model and target that were written to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path, identity: RunIdentity, facts: Mapping[str, Any]) -> Self:
        """The folder, made or continued.

        Raises:
            OutputError: it is another run's, holds something else, or cannot be written.
        """
        folder = cls(path)
        folder._claim(identity, facts)
        return folder

    @property
    def records(self) -> Path:
        return self.path / "records.sqlite"

    @property
    def spans(self) -> Path:
        """What all sessions did when, for trace and report."""
        return self.path / "spans.jsonl"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def trace(self) -> Path:
        return self.path / "trace.json"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def schedules(self) -> Path:
        """The best schedules, see `chosen_schedules`."""
        return self.path / "schedules.json"

    @property
    def found(self) -> Path:
        """The folder of the search that goes on from given schedules."""
        return self.path / "found"

    @property
    def program(self) -> Path:
        return self.path / "program"

    @property
    def kept(self) -> Path:
        """Compiles that `tilefarm replay` can repeat."""
        return self.path / "kept"

    @property
    def leases(self) -> Path:
        """Which leases the run holds."""
        return self.path / "leases.json"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def search_log(self) -> Path:
        """One line for every trial: its life from proposal to end."""
        return self.log / "search.log"

    def write_program(self, program: NetworkProgram, versions: Mapping[str, str]) -> None:
        """Write everything that `program_files` lists, in its order: the manifest last."""
        try:
            self.program.mkdir(exist_ok=True)
        except OSError as error:
            raise unwritable(self.program, error, _ELSEWHERE) from None
        for name, content in program_files(program, versions).items():
            write_atomically(self.program / name, content)

    def write_schedules(self, text: str) -> None:
        """Write what a later version builds the program from."""
        write_atomically(self.schedules, text.encode())

    def write_summary(self, summary: RunSummary) -> None:
        """Write what machines read of the summary."""
        write_atomically(self.summary, (json.dumps(brief(summary), indent=2) + "\n").encode())

    def read_summary(self) -> Mapping[str, Any]:
        """What `write_summary` wrote; nothing where there is none, or no whole one."""
        try:
            document = read_json(self.summary)
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) else {}

    def is_of_another_model(self, model: Digest) -> bool:
        """Whether a run of another model made it; False where there is nothing."""
        file = self.path / _RUN_FILE
        return file.exists() and _identity_in(file).model != model

    def forget(self) -> None:
        """Remove the folder if it is one that a run made.

        Raises:
            OutputError: it holds something else.
        """
        if not self.path.exists():
            return
        _identity_in(self.path / _RUN_FILE)
        shutil.rmtree(self.path)

    def _claim(self, identity: RunIdentity, facts: Mapping[str, Any]) -> None:
        file = self.path / _RUN_FILE
        if file.exists():
            differences = identity.differences(_identity_in(file))
            if differences:
                raise OutputError(
                    f"{self.path}: belongs to {' and '.join(differences)}",
                    "choose another folder with --out, or delete this one",
                )
            self._make_log_folder()
            return
        if self.path.exists() and not self._is_unclaimed():
            raise OutputError(
                f"{self.path}: holds something else", "choose an empty or a new folder with --out"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.path, error, _ELSEWHERE) from None
        document = {
            "schema": SCHEMA,
            "model_digest": identity.model.hex,
            "target_digest": identity.target.hex,
            "seed": identity.seed,
            "proposer": identity.proposer,
            **facts,
        }
        for draft in drafts(file):
            draft.unlink(missing_ok=True)
        write_atomically(file, (json.dumps(document, indent=2) + "\n").encode())
        self._make_log_folder()

    def _make_log_folder(self) -> None:
        try:
            self.log.mkdir(exist_ok=True)
        except OSError as error:
            raise unwritable(self.log, error, _ELSEWHERE) from None

    def _is_unclaimed(self) -> bool:
        """Whether it holds nothing, but for what runs left that were killed as they claimed it."""
        if not self.path.is_dir():
            return False
        return not {*self.path.iterdir()} - {*drafts(self.path / _RUN_FILE)}


def _identity_in(file: Path) -> RunIdentity:
    try:
        document = read_json(file)
        if document["schema"] != SCHEMA:
            raise OutputError(
                f"{file}: schema {document['schema']}, this version writes {SCHEMA}",
                "choose another folder with --out",
            )
        return RunIdentity(
            model=Digest(document["model_digest"]),
            target=Digest(document["target_digest"]),
            seed=int(document["seed"]),
            proposer=str(document["proposer"]),
        )
    except OSError as error:
        raise OutputError(
            f"cannot read {file}: {error.strerror}", "choose another folder with --out"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise OutputError(
            f"{file}: not a file that tilefarm wrote", "choose another folder with --out"
        ) from None
