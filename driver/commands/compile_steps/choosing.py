"""The workloads of a network by number, name or operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilefarm.errors import SettingsError
from tilefarm.plural import plural
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.space import generate
from driver.network import Network, is_searched
from tuner.sampler import Sampler, SpaceSize


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A distinct workload of a network.

    Attributes:
        number: counts from 1 in order of first use.
        macs: useful multiply-accumulates of all its steps together.
        steps: names of the network's steps that it is.
    """

    number: int
    workload: Workload
    place: str
    macs: int
    steps: tuple[str, ...]


def listed(network: Network) -> list[Listed]:
    """The distinct workloads of a network, those of the processor included."""
    distinct = dict.fromkeys(step.workload for step in network.steps)
    rows = []
    for number, workload in enumerate(distinct, 1):
        steps = [step for step in network.steps if step.workload == workload]
        rows.append(
            Listed(
                number=number,
                workload=workload,
                place=steps[0].place,
                macs=sum(step.macs for step in steps),
                steps=tuple(step.name for step in steps),
            )
        )
    return rows


def chosen(rows: Sequence[Listed], words: str | None) -> Listed:
    """The workload that a number, (the start of) a name, a step's name or an operator means.

    Raises:
        SettingsError: none or several fit; the error lists them.
    """
    readings = [list(rows)] if words is None else _readings(rows, words)
    fitting = next(filter(None, readings), [])
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(f"{row.number} {row.workload.name}" for row in fitting or rows)
    if fitting:
        asked = f" --workload {words}" * (words is not None)
        what = f"{plural(len(fitting), 'workload')} fit{asked}"
        first = fitting[0].number
        raise SettingsError(f"{what}: {names}", f"choose one by its number: --workload {first}")
    raise SettingsError(f"--workload {words}: no such workload", f"one of {names}")


def _readings(rows: Sequence[Listed], words: str) -> Iterator[list[Listed]]:
    """What words may mean, the most exact reading first."""
    yield [row for row in rows if words == str(row.number)]
    yield [row for row in rows if words == row.workload.name or words in row.steps]
    yield [row for row in rows if row.workload.name.startswith(words)]
    yield [row for row in rows if words == row.workload.operator]


def points_in_space(workload: Workload, target: Target) -> SpaceSize | None:
    """How many schedules there are to choose from; None where there is no space."""
    if not is_searched(workload, target):
        return None
    return Sampler(generate(workload, target).space).size()
