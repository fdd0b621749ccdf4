"""What constraints fix once some variables are known, and the compiled evaluation of a point."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import repeat
from operator import itemgetter
from typing import TypeAlias

from tilefarm.space import Constraint, Largest, Le, Prod, SearchSpace, Select, Sum, Table

Values: TypeAlias = list[int]
Step: TypeAlias = Callable[[Values], bool]
"""Fills in or checks values of a point, given by position; False when the point is impossible."""


@dataclass(frozen=True, slots=True)
class FunctionalConstraint:
    """A constraint used as a function: once its other variables are known it fixes these."""

    constraint: Constraint
    fixes: tuple[str, ...]


def variables_of(constraint: Constraint) -> tuple[str, ...]:
    """The variables that a constraint speaks of, each once."""
    match constraint:
        case Prod(product=product, factors=factors):
            names: tuple[str, ...] = (product, *factors)
        case Sum(total=total, terms=terms):
            names = (total, *(v for _, v in terms))
        case Le(left=left, bound=bound):
            names = (left, bound) if isinstance(bound, str) else (left,)
        case Select(value=value, choice=choice, options=options):
            names = (value, choice, *options)
        case Largest(value=value, options=options):
            names = (value, *options)
        case Table(variables=variables):
            names = variables
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Signs:
    """Names of variables that are above zero, and of those that may be below it."""

    positive: frozenset[str]
    negative: frozenset[str]

    @classmethod
    def of(cls, space: SearchSpace) -> Signs:
        """By the domains of a space; a variable without a domain is zero or more."""
        return cls(
            positive=frozenset(v.name for v in space.variables if v.domain and v.domain[0] > 0),
            negative=frozenset(v.name for v in space.variables if v.domain and v.domain[0] < 0),
        )


def functional_constraints(
    constraints: Sequence[Constraint], known: Collection[str], signs: Signs
) -> list[FunctionalConstraint]:
    """What follows from `known` alone, in an order in which it can be computed."""
    return InferenceState(constraints, signs).of(known)


class InferenceState:
    """What follows as more and more variables become known.

    A constraint is asked again only when another one of its variables is known, so all steps
    together take little more time than the last one alone would.

    Attributes:
        known: the variables that were given, and those that follow.
    """

    def __init__(self, constraints: Sequence[Constraint], signs: Signs) -> None:
        self.known = set[str]()
        self._signs = signs
        self._constraints = [(c, variables_of(c)) for c in constraints if not isinstance(c, Le)]
        self._open = [len(variables) for _, variables in self._constraints]
        """Of each constraint, how many of its variables are not known."""
        self._due = [(0, place) for place in range(len(self._constraints))]
        """A heap of constraints to ask, round by round; within a round in their order."""
        self._places: dict[str, list[int]] = {}
        """By variable: the constraints that speak of it."""
        for place, (_, variables) in enumerate(self._constraints):
            for name in variables:
                self._places.setdefault(name, []).append(place)

    def of(self, names: Iterable[str]) -> list[FunctionalConstraint]:
        """What follows now that these are known as well, in an order in which it can be computed.

        At first that is also what follows from nothing.
        """
        found = list[FunctionalConstraint]()
        for name in names:
            self._learn(name, (0, -1))
        while self._due:
            now = heappop(self._due)
            while self._due and self._due[0] == now:
                heappop(self._due)
            constraint, variables = self._constraints[now[1]]
            open_ = tuple([v for v in variables if v not in self.known])
            if fixes := _fixes(constraint, open_, self._signs):
                found.append(FunctionalConstraint(constraint, fixes))
                for name in fixes:
                    self._learn(name, now)
        return found

    def _learn(self, name: str, now: tuple[int, int]) -> None:
        """Constraints before the one that is being asked have their turn in the next round."""
        if name in self.known:
            return
        self.known.add(name)
        turn, asked = now
        for place in self._places.get(name, ()):
            self._open[place] -= 1
            # Only a table fixes more than one variable.
            if self._open[place] == 1 or isinstance(self._constraints[place][0], Table):
                heappush(self._due, (turn if place > asked else turn + 1, place))


def _fixes(constraint: Constraint, open_: tuple[str, ...], signs: Signs) -> tuple[str, ...]:
    """Of the variables that are not known yet those that the others fix: all of them, or none."""
    match constraint:
        case Prod() if len(open_) == 1:
            return (open_[0],) if _multiplies_or_divides(constraint, open_[0], signs) else ()
        case Sum(total=total, terms=terms) if len(open_) == 1:
            once = (total, *(v for _, v in terms)).count(open_[0]) == 1
            usable = open_[0] == total or any(v == open_[0] and k for k, v in terms)
            return (open_[0],) if once and usable else ()
        case Select(value=value, choice=choice, options=options) if open_ == (value,):
            return (value,) if value not in (choice, *options) else ()
        case Largest(value=value, options=options) if open_ == (value,):
            return (value,) if value not in options else ()
        case Table() if open_ and _is_function(constraint, open_):
            return open_
        case _:
            return ()


def _multiplies_or_divides(prod: Prod, name: str, signs: Signs) -> bool:
    """Whether a product fixes its one unknown: by multiplying, or by a division that is safe."""
    if (prod.product, *prod.factors).count(name) != 1:
        return False
    if name == prod.product:
        return True
    others = [f for f in prod.factors if f != name]
    return (
        prod.coefficient > 0
        and all(f in signs.positive for f in others)
        and not signs.negative.intersection((name, prod.product))
    )


def _is_function(table: Table, of: Sequence[str]) -> bool:
    """Whether the other columns of a table leave one choice for the columns `of`."""
    if len(set(table.variables)) < len(table.variables):
        return False
    given = [i for i, v in enumerate(table.variables) if v not in of]
    if not given:
        return len(set(table.rows)) <= 1
    known = set(map(itemgetter(*given), table.rows))
    return len(known) == len(table.rows) or len(known) == len(set(table.rows))


def evaluation(space: SearchSpace, index: Mapping[str, int]) -> tuple[Step, ...] | None:
    """Steps that compute all derived values from the tunables and check every constraint.

    None when some derived variable is not a function of the tunables; the search then has to find
    it.
    """
    known = {v.name for v in space.tunables}
    constants = [v for v in space.variables if not v.tunable and len(v.domain) == 1]
    steps = [_constant(index[v.name], v.domain[0]) for v in constants]
    known |= {v.name for v in constants}
    used = functional_constraints(space.constraints, known, Signs.of(space))
    known |= {v for d in used for v in d.fixes}
    if any(v.name not in known for v in space.variables):
        return None
    defined = {id(d.constraint) for d in used}
    steps += [_compute(d, index) for d in used]
    steps += [_check(c, index) for c in space.constraints if id(c) not in defined]
    for v in space.variables:
        if v.domain and not (len(v.domain) == 1 and not v.tunable):
            steps.append(_member(index[v.name], frozenset(v.domain)))
        elif not v.domain:
            steps.append(_not_negative(index[v.name]))
    return tuple(steps)


def _constant(at: int, value: int) -> Step:
    def step(values: Values) -> bool:
        values[at] = value
        return True

    return step


def _member(at: int, domain: frozenset[int]) -> Step:
    return lambda values: values[at] in domain


def _not_negative(at: int) -> Step:
    return lambda values: values[at] >= 0


def _compute(functional: FunctionalConstraint, index: Mapping[str, int]) -> Step:
    constraint, target = functional.constraint, index[functional.fixes[0]]
    match constraint:
        case Prod(product=product) if product == functional.fixes[0]:
            return _product(target, [index[f] for f in constraint.factors], constraint.coefficient)
        case Prod(product=product, factors=factors, coefficient=scale):
            others = [index[f] for f in factors if index[f] != target]
            return _quotient(target, index[product], others, scale)
        case Sum(total=total, terms=terms, constant=constant) if total == functional.fixes[0]:
            return _total(target, [(k, index[v]) for k, v in terms], constant)
        case Sum(total=total, terms=terms, constant=constant):
            coefficient = next(k for k, v in terms if index[v] == target)
            rest = [(k, index[v]) for k, v in terms if index[v] != target]
            return _difference(target, coefficient, index[total], rest, constant)
        case Select(choice=choice, options=options):
            return _selected(target, index[choice], [index[o] for o in options])
        case Largest(options=options):
            return _largest(target, [index[o] for o in options])
        case Table():
            return _looked_up(constraint, functional.fixes, index)
        case Le():
            raise AssertionError("an inequality defines nothing")


def _product(at: int, factors: Sequence[int], scale: int) -> Step:
    def step(values: Values) -> bool:
        product = scale
        for f in factors:
            product *= values[f]
        values[at] = product
        return True

    return step


def _quotient(at: int, product: int, others: Sequence[int], scale: int) -> Step:
    def step(values: Values) -> bool:
        divisor = scale
        for f in others:
            divisor *= values[f]
        if divisor == 0 or values[product] % divisor:
            return False
        values[at] = values[product] // divisor
        return True

    return step


def _total(at: int, terms: Sequence[tuple[int, int]], constant: int) -> Step:
    def step(values: Values) -> bool:
        total = constant
        for k, v in terms:
            total += k * values[v]
        values[at] = total
        return True

    return step


def _difference(
    at: int, coefficient: int, total: int, rest: Sequence[tuple[int, int]], constant: int
) -> Step:
    def step(values: Values) -> bool:
        left = values[total] - constant
        for k, v in rest:
            left -= k * values[v]
        values[at], remainder = divmod(left, coefficient)
        return remainder == 0

    return step


def _selected(at: int, choice: int, options: Sequence[int]) -> Step:
    def step(values: Values) -> bool:
        if not 0 <= values[choice] < len(options):
            return False
        values[at] = values[options[values[choice]]]
        return True

    return step


def _largest(at: int, options: Sequence[int]) -> Step:
    def step(values: Values) -> bool:
        values[at] = max([values[option] for option in options])
        return True

    return step


def _looked_up(table: Table, fixes: Sequence[str], index: Mapping[str, int]) -> Step:
    given = [i for i, v in enumerate(table.variables) if v not in fixes]
    asked = [i for i, v in enumerate(table.variables) if v in fixes]
    columns = [*zip(*table.rows, strict=True)] or [()] * len(table.variables)
    of_given = zip(*[columns[i] for i in given], strict=True) if given else repeat(())
    answers = dict(zip(of_given, zip(*[columns[i] for i in asked], strict=True), strict=False))
    sources = [index[table.variables[i]] for i in given]
    targets = [index[table.variables[i]] for i in asked]

    def step(values: Values) -> bool:
        answer = answers.get(tuple([values[s] for s in sources]))
        if answer is None:
            return False
        for at, value in zip(targets, answer, strict=True):
            values[at] = value
        return True

    return step


def _check(constraint: Constraint, index: Mapping[str, int]) -> Step:
    match constraint:
        case Prod(product=product, factors=factors, coefficient=scale):
            return _same(index[product], _product(-1, [index[f] for f in factors], scale))
        case Sum(total=total, terms=terms, constant=constant):
            return _same(index[total], _total(-1, [(k, index[v]) for k, v in terms], constant))
        case Select(value=value, choice=choice, options=options):
            return _same(index[value], _selected(-1, index[choice], [index[o] for o in options]))
        case Largest(value=value, options=options):
            return _same(index[value], _largest(-1, [index[o] for o in options]))
        case Le(left=left, bound=bound):
            return _at_most(index[left], index[bound] if isinstance(bound, str) else None, bound)
        case Table(variables=variables, rows=rows):
            columns, allowed = [index[v] for v in variables], frozenset(rows)
            return lambda values: tuple([values[c] for c in columns]) in allowed


def _at_most(at: int, limit_at: int | None, limit: int | str) -> Step:
    if limit_at is not None:
        return lambda values: values[at] <= values[limit_at]
    most = int(limit)
    return lambda values: values[at] <= most


def _same(at: int, compute: Step) -> Step:
    """Check by computing into the spare last place and comparing."""

    def step(values: Values) -> bool:
        return compute(values) and values[-1] == values[at]

    return step
