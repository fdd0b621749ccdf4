"""The schedule that an option means: a trace or a point of a file, the plain one, a run's best."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.documents import decoded, read_text
from tilefarm.errors import DataError, SettingsError
from tilefarm.measurement import Trial
from tilefarm.space import violations
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.plugins.passes import default_trace
from compile_worker.space import Generated, generate
from driver.network import is_searched
from driver.program.user_passes import require_passes_of_run
from driver.program.vta.layers import predicted_best
from tuner.run_off import winner
from tuner.trial_store import TrialStore

PLAIN: Final = "default"
PREDICTED: Final = "predicted"
_NAMED: Final = 20
"""Values of a variable that a message names."""
_TRACE: Final = "`tilefarm show NETWORK --workload W --json` has one; or `default`, or `predicted`"
_POINT: Final = 'a file with some of the space\'s variables, for example {"tile_h": 4}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which schedule is wanted; at most one of the three.

    Attributes:
        trace: "default", "predicted", or a file of schedule primitives.
        point: a file with values of the space's variables.
        best_of: the output folder of a run, of which the best measured schedule is taken.
    """

    trace: str | None = None
    point: Path | None = None
    best_of: Path | None = None

    @property
    def words(self) -> str:
        """What it is, for people."""
        if self.best_of is not None:
            return f"best of {self.best_of}"
        return str(self.point or self.trace or PLAIN)


def trace_of(choice: Choice, workload: Workload, target: Target, *, seed: int = 0) -> Trace:
    """The schedule of a workload that a choice means.

    A workload without schedules has one that chooses nothing as its default.

    Raises:
        SettingsError: there is nothing to choose for the workload, or no such schedule.
        DataError: a file or a folder cannot be used.
    """
    name = choice.trace or PLAIN
    if choice.point is None and choice.best_of is None:
        if name not in (PLAIN, PREDICTED):
            return read_trace(Path(name))
        if name == PLAIN and not is_searched(workload, target):
            return default_trace()
    made = _space(workload, target)
    if choice.best_of is not None:
        return _best_trace(choice.best_of, workload, made)
    if choice.point is not None:
        return made.trace(read_point(choice.point, made))
    if name == PREDICTED:
        return made.trace(predicted_best(made, seed))
    return made.trace(dict(made.space.default))


def read_trace(path: Path) -> Trace:
    """The trace of a file.

    Raises:
        DataError: it cannot be read, or is not a trace.
    """
    try:
        return Trace.from_json(_text(path, _TRACE))
    except ValueError as error:
        raise DataError(f"{path}: not a trace: {error}", _TRACE) from None


def read_point(path: Path, made: Generated) -> dict[str, int]:
    """The valid point of a file; variables that it leaves out have their plain values.

    Raises:
        DataError: it cannot be read, names unknown variables, or breaks constraints.
    """
    try:
        document = decoded(_text(path, _POINT))
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}", _POINT) from None
    if not isinstance(document, dict) or not all(type(v) is int for v in document.values()):
        raise DataError(f"{path}: a point is a JSON object of integers", _POINT)
    space = made.space
    unknown = sorted(document.keys() - {v.name for v in space.variables})
    if unknown:
        names = ", ".join(v.name for v in space.tunables)
        raise DataError(f"{path}: {unknown[0]!r} is no variable of {space.name}", f"of {names}")
    plain = dict(space.default)
    for variable in space.tunables:
        value = document.get(variable.name, plain[variable.name])
        if value not in variable.domain:
            values = ", ".join(map(str, variable.domain[:_NAMED]))
            raise DataError(
                f"{path}: the point breaks domain:{variable.name}, which has no such value",
                f"one of {values}{', ...' if len(variable.domain) > _NAMED else ''}",
            )
    tunables = {v.name: document.get(v.name, plain[v.name]) for v in space.tunables}
    point = made.completed(tunables)
    broken = violations(space, point)
    if broken:
        raise DataError(
            f"{path}: the point breaks {', '.join(broken)}", "smaller tiles need less memory"
        )
    return point


def _space(workload: Workload, target: Target) -> Generated:
    try:
        return generate(workload, target)
    except ValueError as error:
        raise SettingsError(
            str(error), "`tilefarm show NETWORK` lists which workloads have schedules to choose"
        ) from None


def _best_trace(folder: Path, workload: Workload, made: Generated) -> Trace:
    records = folder / "records.sqlite"
    if not records.is_file():
        raise DataError(f"{folder}: no records of a run", "give the folder that `tune` wrote")
    require_passes_of_run(folder)
    with TrialStore(records, read_only=True) as store:
        trials = store.trials(workload.digest)
        same = [trial for trial in trials if _means_the_same(made, trial)]
        best = winner(same, store.run_off(workload.digest))
    if best is None and winner(trials, None) is None:
        raise DataError(
            f"{folder}: no good trial of {workload.name} in its records",
            "the folder of a run of this network, or more --trials",
        )
    if best is None:
        raise DataError(
            f"{folder}: its points mean other schedules by now",
            "with the --plugin files of that run, if it had any; or tune again, with this version",
        )
    return made.trace(dict(best.point))


def _means_the_same(made: Generated, trial: Trial) -> bool:
    """Whether its point still is the schedule that was measured."""
    try:
        return made.trace(dict(trial.point)).digest == trial.trace
    except (KeyError, ValueError):
        return False


def _text(path: Path, hint: str) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: cannot be read: {getattr(error, 'strerror', error)}", hint
        ) from None
