"""What lowering and spaces raise when a machine cannot hold what is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from tilefarm.errors import UserError


@dataclass(frozen=True, slots=True)
class Violation:
    """A limit that is exceeded: the constraint's name, and why, with the numbers."""

    name: str
    why: str


class Refused(Exception):
    """A pass found a limit exceeded; the compiler turns it into a BuildFailure.

    Args:
        stage: name of the pass.
        violation: the limit's name, as in the search space, and the reason.
    """

    def __init__(self, stage: str, violation: Violation) -> None:
        super().__init__(stage, violation)

    @property
    def stage(self) -> str:
        return str(self.args[0])

    @property
    def violation(self) -> Violation:
        found = self.args[1]
        assert isinstance(found, Violation)
        return found

    @property
    def constraint(self) -> str:
        return self.violation.name

    @property
    def why(self) -> str:
        return self.violation.why

    def __str__(self) -> str:
        return f"{self.stage}: {self.constraint}: {self.why}"


class SpaceError(UserError, ValueError):
    """No schedule of a workload fits a target.

    Args:
        workload: its name.
        target: its name.
        constraint: what leaves the search space empty.
        why: the limit, in words.
    """

    def __init__(self, workload: str, target: str, constraint: str, why: str) -> None:
        Exception.__init__(self, workload, target, constraint, why)

    @property
    def constraint(self) -> str:
        return str(self.args[2])

    @property
    def what(self) -> str:
        workload, target, constraint, why = self.args
        reason = f"{constraint}: {why}" if why else constraint
        return f"{workload}: nothing fits on {target}, however small the tiles: {reason}"

    @property
    def hint(self) -> str:
        return "a target with more of that, or the layer on the processor"


def require(stage: str, violation: Violation | None) -> None:
    """Raise Refused if there is a violation."""
    if violation is not None:
        raise Refused(stage, violation)
