"""What lowering raises when the accelerator cannot hold what a schedule asks for."""

from __future__ import annotations

from compile_worker.limits import Violation


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


def require(stage: str, violation: Violation | None) -> None:
    """Raise Refused if there is a violation."""
    if violation is not None:
        raise Refused(stage, violation)
