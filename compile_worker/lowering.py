"""Lowering: a machine's passes over a scheduled function, and a pass of a user's among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.ir.verify import Stage, verify
from compile_worker.machine import Machine, Machines, machine_of
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import (
    SCHEDULED,
    Pass,
    PassError,
    Watcher,
    applied,
    inserted,
    look_away,
)
from compile_worker.plugins.passes import with_user_passes


def step_names(machines: Machines = MACHINES) -> list[str]:
    """The name of every pass of any machine, once each."""
    return list(dict.fromkeys(step.name for each in machines.values() for step in each.passes))


def lower(
    func: Func,
    target: Target,
    *,
    machines: Machines = MACHINES,
    watch: Watcher = look_away,
    check: bool = False,
) -> Func:
    """Run every pass of the machine that the function is for.

    Args:
        func: a scheduled function, or the plain nest of a CPU operator.
        target: the machine at hand, whose limits are respected.
        machines: MACHINES, perhaps with more passes (see `with_pass`), or more machines.
        watch: is shown the function after each pass.
        check: verify the rules of its stage after each pass, which takes longer than the pass.

    Raises:
        Refused: the machine cannot hold what the schedule asks for.
        VerifyError: a pass has left something that its stage forbids, which is a bug.
        PassError: a user's pass has.
    """
    checked: tuple[Func, Stage] | None = None
    for step in passes_of(func, target, machines):
        func = applied(step, func, target)
        if check and checked != (func, step.leaves):  # many passes find nothing to change
            verify(func, step.leaves)
            checked = func, step.leaves
        watch(step.name, func)
    return func


def passes_of(func: Func, target: Target, machines: Machines = MACHINES) -> tuple[Pass, ...]:
    """The passes of the machine that a function is for, and those of users that it asks for.

    Raises:
        PassError: it asks for one that nobody has given here.
    """
    return with_user_passes(machine_of(func, target, machines).passes, func)


def with_pass(machines: Machines, step: Pass, *, after: str) -> Mapping[str, Machine]:
    """The machines with one more pass, wherever one is called `after`; it is always verified.

        inline_stages, …, flatten, simplify
    ->                         with_pass(MACHINES, Pass("mine", run, Stage.FLAT), after="flatten")
        inline_stages, …, flatten, mine, simplify

    Args:
        after: name of a pass; "scheduled" means before all of them.

    Raises:
        PassError: no such pass, a name that is taken, or a stage that lowering is not at there.
    """
    names = [SCHEDULED, *step_names(machines)]
    if after not in names:
        raise PassError(f"there is no pass {after!r} to go behind", f"one of {', '.join(names)}")
    return {kind: _with_pass(machine, step, after) for kind, machine in machines.items()}


def _with_pass(machine: Machine, step: Pass, after: str) -> Machine:
    if after not in (SCHEDULED, *(each.name for each in machine.passes)):
        return machine
    return replace(machine, passes=inserted(machine.passes, step, after=after))
