"""A space as a model of Google's CP-SAT, to compare with: its points one by one, as Heron samples.

Optional: OR-Tools is needed by nothing that searches.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilefarm.space import Constraint, Largest, Le, Point, Prod, SearchSpace, Select, Sum, Table

from tuner.functional_constraints import variables_of
from tuner.search_plan import SearchPlan

_LARGE: Final = 1 << 40
"""Above every value that a limit of a space speaks of; products of two still fit 64 bits."""
_SECONDS: Final = 10.0


def is_there() -> bool:
    """Whether OR-Tools is installed."""
    return importlib.util.find_spec("ortools") is not None


def solution(space: SearchSpace, seed: int, hints: Point) -> dict[str, int] | None:
    """The tunables of one valid point, near to the hints; None if there is none (in time).

    A model and a solver of its own for each, as in Heron (ASPLOS 2023).
    """
    from ortools.sat.python import cp_model

    model = _Model(space, cp_model.CpModel(), _that_prune(space))
    for name, value in hints.items():
        model.cp.add_hint(model.unknown(name), value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.cp_model_presolve = False
    solver.parameters.max_time_in_seconds = _SECONDS
    if solver.solve(model.cp) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return {v.name: solver.value(model.unknown(v.name)) for v in space.tunables}


def count(space: SearchSpace) -> int:
    """How many points the space has: all variables need domains, and small ones."""
    from ortools.sat.python import cp_model

    class Counter(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        found = 0

        def on_solution_callback(self) -> None:
            self.found += 1

    model, counter = _Model(space, cp_model.CpModel(), space.constraints), Counter()
    for variable in space.variables:
        model.unknown(variable.name)
    solver = cp_model.CpSolver()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    solver.solve(model.cp, counter)
    return counter.found


def _that_prune(space: SearchSpace) -> Sequence[Constraint]:
    """Without those that only compute what nobody limits."""
    return SearchPlan(space).that_prune()


@dataclass(slots=True)
class _Model:
    """Variables and constraints; `Any` are those of CP-SAT, which has no types of its own."""

    space: SearchSpace
    cp: Any
    constraints: Sequence[Constraint]
    _unknowns: dict[str, Any] = field(default_factory=dict)
    _domains: Mapping[str, Sequence[int]] = field(init=False)

    def __post_init__(self) -> None:
        self._domains = {v.name: v.domain for v in self.space.variables}
        for variable in self.space.tunables:
            self.unknown(variable.name)
        for constraint in self.constraints:
            for name in variables_of(constraint):
                self.unknown(name)
            self._add(constraint)

    def unknown(self, name: str) -> Any:
        """The variable of that name."""
        from ortools.sat.python import cp_model

        if name not in self._unknowns:
            domain = self._domains[name]
            values = cp_model.Domain.from_values(domain) if domain else cp_model.Domain(0, _LARGE)
            self._unknowns[name] = self.cp.new_int_var_from_domain(values, name)
        return self._unknowns[name]

    def _add(self, constraint: Constraint) -> None:
        match constraint:
            case Prod(product=product, factors=factors, coefficient=scale):
                so_far = self.unknown(factors[0])
                for name in factors[1:]:
                    factor, so_far_next = self.unknown(name), self._number()
                    self.cp.add_multiplication_equality(so_far_next, [so_far, factor])
                    so_far = so_far_next
                self.cp.add(self.unknown(product) == scale * so_far)
            case Sum(total=total, terms=terms, constant=constant):
                terms_ = [k * self.unknown(name) for k, name in terms]
                self.cp.add(self.unknown(total) == constant + sum(terms_))
            case Le(left=left, bound=bound):
                most = self.unknown(bound) if isinstance(bound, str) else bound
                self.cp.add(self.unknown(left) <= most)
            case Select(value=value, choice=choice, options=options):
                self.cp.add_element(
                    self.unknown(choice), [self.unknown(o) for o in options], self.unknown(value)
                )
            case Largest(value=value, options=options):
                self.cp.add_max_equality(self.unknown(value), [self.unknown(o) for o in options])
            case Table(variables=variables, rows=rows):
                self.cp.add_allowed_assignments([self.unknown(v) for v in variables], rows)

    def _number(self) -> Any:
        return self.cp.new_int_var(-_LARGE, _LARGE, "")
