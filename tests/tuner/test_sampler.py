"""The sampler against brute force, and on spaces with known answers."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.kernels.nests import EXAMPLES
from kit.search.random_spaces import NAMES, brute_force, spaces
from kit.search.toy_spaces import conv_like_space, divisors, empty_space, pair_space
from numpy.typing import NDArray
from tilefarm.space import (
    ESTIMATE,
    Le,
    Prod,
    SearchSpace,
    Sum,
    Variable,
    violations,
)
from tilefarm.target import TARGETS

from compile_worker.space import generate
from tuner.conflict import conflict
from tuner.functional_constraints import (
    FunctionalConstraint,
    InferenceState,
    Signs,
    evaluation,
    functional_constraints,
)
from tuner.sampler import Sampler
from tuner.search import Allowed, PartialPoints, Search, distinct


@settings(max_examples=examples(150), deadline=None)
@given(spaces())
def test_all_points_are_those_of_brute_force(space: SearchSpace) -> None:
    found = Sampler(space).enumerate(10_000)
    assert found is not None
    values = [tuple(p[n] for n in NAMES) for p in found]
    assert set(values) == brute_force(space)
    assert len(set(values)) == len(values)


@settings(max_examples=examples(60), deadline=None)
@given(spaces(), st.sampled_from(NAMES), st.lists(st.integers(-3, 7), min_size=1, max_size=2))
def test_a_limit_leaves_the_points_below_it(space: SearchSpace, name: str, most: list[int]) -> None:
    at, every = NAMES.index(name), brute_force(space)
    for sampler in (Sampler(space), Sampler(space, limits_on=(name,))):
        for each in most:
            with sampler.limited(name, each):
                found = sampler.enumerate(10_000)
            assert found is not None
            wanted = {values for values in every if values[at] <= each}
            assert {tuple(p[n] for n in NAMES) for p in found} == wanted
        found = sampler.enumerate(10_000)
        assert found is not None
        assert {tuple(p[n] for n in NAMES) for p in found} == every, "and none is left"


def test_a_limit_above_a_domain_permits_nothing_beyond_it() -> None:
    domains = {"a": (0,), "b": (0, 1), "c": (-1,), "d": (0,)}
    space = SearchSpace(
        name="empty",
        version=1,
        variables=tuple(Variable(name=n, domain=d, tunable=False) for n, d in domains.items()),
        constraints=(Prod(name="c0", product="c", factors=("b",)),),
        default=(),
    )
    sampler = Sampler(space)
    assert sampler.enumerate(10) == []
    with sampler.limited("c", 0):
        assert sampler.enumerate(10) == []


def test_a_limit_that_a_search_knows_of_prunes_partial_points() -> None:
    space = generate(EXAMPLES["conv2d"], TARGETS["sim"]).space
    estimates = Sampler(space).draw(500, np.random.default_rng(0))[0][:, _column(space, ESTIMATE)]
    at_most = int(estimates.min())
    kept = list[int]()

    class Counting(Search):
        def _expand(
            self,
            depth: int,
            partial: PartialPoints,
            at: NDArray[np.intp],
            allowed: Allowed | None,
            thinning: Any,
        ) -> tuple[PartialPoints, NDArray[np.intp]]:
            kept.append(len(at))
            return super()._expand(depth, partial, at, allowed, thinning)

    found = []
    for limits_on in ((), (ESTIMATE,)):
        kept.clear()
        search = Counting(space, limits_on=limits_on)
        search.limit(ESTIMATE, at_most)
        found.append((np.concatenate([*search.scan()]), sum(kept)))
    (late, looked_at), (early, fewer) = found
    assert (late == early).all()
    assert 0 < len(early) <= fewer < looked_at / 2


def _column(space: SearchSpace, name: str) -> int:
    return [v.name for v in space.variables].index(name)


@settings(max_examples=examples(60), deadline=None)
@given(spaces())
def test_first_levels_at_once_are_those_one_by_one(space: SearchSpace) -> None:
    search = Search(space)
    every = [row for rows in search.scan() for row in rows.tolist()]
    one_by_one = [row for rows in search.scan(allowed={}) for row in rows.tolist()]
    assert every == one_by_one
    begun = search.beam(np.random.default_rng(0), 512)[0].tolist()
    assert begun == every


@settings(max_examples=examples(60), deadline=None)
@given(spaces(), st.permutations(NAMES))
def test_what_follows_step_by_step_is_what_follows_at_once(
    space: SearchSpace, order: list[str]
) -> None:
    signs = Signs.of(space)
    inference, fixed = InferenceState(space.constraints, signs), list[FunctionalConstraint]()
    for at, name in enumerate(order):
        fixed += inference.of([name])
        at_once = functional_constraints(space.constraints, order[: at + 1], signs)
        follows = {v for f in at_once for v in f.fixes}
        assert inference.known == follows.union(order[: at + 1])
        assert {v for f in fixed for v in f.fixes} <= inference.known
        assert len({id(f.constraint) for f in fixed}) == len(fixed), "each is used once"


def test_the_row_of_a_point_is_that_of_the_valid_point_with_its_tunables() -> None:
    sampler = Sampler(conv_like_space())
    default = sampler.default()
    assert default is not None
    derived = next(v.name for v in sampler.space.variables if not v.tunable and not v.domain)
    for point in (default, dict(sampler.space.default), default | {derived: default[derived] + 1}):
        row = sampler.row_of(point)
        assert row is not None
        assert row.tolist() == sampler.row(default).tolist()
    invalid = next(
        {**default, v.name: max(v.domain) + 1} for v in sampler.space.tunables if len(v.domain) > 1
    )
    assert sampler.row_of(invalid) is None


@settings(max_examples=examples(60), deadline=None)
@given(spaces(), st.integers(0, 5))
def test_samples_are_distinct_and_valid(space: SearchSpace, seed: int) -> None:
    drawn = Sampler(space).sample(12, np.random.default_rng(seed))
    values = {tuple(p[n] for n in NAMES) for p in drawn}
    assert values <= brute_force(space)
    assert len(values) == len(drawn) == min(12, len(brute_force(space)))


@settings(max_examples=examples(60), deadline=None)
@given(spaces())
def test_tunables_are_completed_exactly_when_that_is_possible(space: SearchSpace) -> None:
    sampler, good = Sampler(space), brute_force(space)
    for values in itertools.product(*(v.domain for v in space.tunables)):
        chosen = dict(zip(sampler.tunables, values, strict=True))
        point = sampler.complete(chosen)
        rest = {v for v in good if chosen.items() <= dict(zip(NAMES, v, strict=True)).items()}
        assert (point is not None) == bool(rest)
        assert point is None or tuple(point[n] for n in NAMES) in rest


@settings(max_examples=examples(150), deadline=None)
@given(spaces())
def test_points_given_by_their_tunables_are_judged_as_by_brute_force(space: SearchSpace) -> None:
    sampler, good = Sampler(space), brute_force(space)
    choices = [*itertools.product(*(v.domain for v in space.tunables))]
    tunables = np.asarray(choices, dtype=np.int64).reshape(len(choices), -1)
    rows, which = sampler.search.valid(tunables)
    found = [tuple(row) for row in rows.tolist()]
    assert sampler.keys(rows) == [choices[i] for i in which]
    assert set(found) <= good
    if evaluation(space, {name: i for i, name in enumerate(NAMES)}) is not None:
        assert set(found) == good


def test_derived_values_follow_from_tunables() -> None:
    space = conv_like_space()
    point = Sampler(space).complete(dict(space.default))
    assert point is not None
    assert point["tile_ih"] == point["tile_h"] + point["tile_kh"] - 1
    assert point["wgt_loads"] == point["wgt_per_step"]
    assert not violations(space, point)
    assert Sampler(space).default() == point


def test_an_invalid_choice_is_not_completed() -> None:
    sampler = Sampler(pair_space(extent=12, limit=6))
    assert sampler.complete({"inner": 12}) is None
    assert sampler.complete({"inner": 5}) is None
    assert sampler.complete({"inner": 4}) == {"extent": 12, "outer": 3, "inner": 4}


def test_a_point_is_explained_by_the_names_of_what_it_breaks() -> None:
    sampler = Sampler(pair_space(extent=12, limit=6))
    assert sampler.explain({"extent": 12, "outer": 2, "inner": 12}) == ["prod", "small"]
    assert sampler.explain({"extent": 12, "outer": 4, "inner": 3}) == []


@settings(max_examples=examples(60), deadline=None)
@given(spaces())
def test_a_conflict_is_a_smallest_set_that_leaves_nothing(space: SearchSpace) -> None:
    names = conflict(space)
    assert bool(names) == (not brute_force(space))
    kept = [c for c in space.constraints if c.name in names]
    if names:
        assert not brute_force(replace(space, constraints=tuple(kept)))
    for left_out in kept:
        fewer = tuple([c for c in kept if c is not left_out])
        assert brute_force(replace(space, constraints=fewer))


def test_the_conflict_of_a_space_names_what_has_to_do_with_it() -> None:
    assert conflict(empty_space()) == ("prod", "at_most_six", "at_least_two")


def test_an_empty_space_has_no_samples() -> None:
    assert Sampler(empty_space()).sample(3, np.random.default_rng(0)) == []


def test_more_points_than_the_limit_is_none() -> None:
    sampler = Sampler(pair_space(extent=12, limit=12))
    assert sampler.enumerate(5) is None
    assert len(sampler.enumerate(6) or ()) == 6


def test_a_few_drawn_rows_do_not_keep_all_that_were_found() -> None:
    drawn, has_all = Sampler(conv_like_space()).draw(5, np.random.default_rng(0))
    assert (len(drawn), has_all) == (5, False)
    assert drawn.base is None, "a part of a larger array keeps all of it"


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_different_rows_are_found_in_the_order_of_their_values(columns: int) -> None:
    rows = np.random.default_rng(0).integers(0, 300, (2000, columns)) ** 3
    if not columns:
        assert distinct(rows).tolist() == [0]
        return
    wanted, first = np.unique(rows, axis=0, return_index=True)
    assert distinct(rows).tolist() == first.tolist()
    assert (rows[distinct(rows)] == wanted).all()
    below = distinct(-rows)
    assert len(np.unique(-rows[below], axis=0)) == len(below) == len(wanted)


@settings(max_examples=examples(60), deadline=None)
@given(spaces())
def test_points_are_told_apart_in_the_same_order_by_the_first_values(space: SearchSpace) -> None:
    rows = Sampler(space).all_rows(100_000)
    assert rows is not None
    telling = Search(space).plan.telling
    assert distinct(rows[:, :telling]).tolist() == distinct(rows).tolist()


def test_values_that_follow_do_not_tell_points_apart_and_free_ones_do() -> None:
    space = pair_space()
    inner_first = replace(space, variables=space.variables[::-1])
    assert Search(inner_first).plan.telling == 1
    free = Variable(name="free", domain=(1, 2), tunable=False)
    assert Search(replace(space, variables=(*space.variables[::-1], free))).plan.telling == 4


def test_samples_cover_the_space_evenly() -> None:
    space = conv_like_space()
    sampler = Sampler(space)
    everything = sampler.all_rows(100_000)
    assert everything is not None
    drawn, _ = sampler.draw(4000, np.random.default_rng(0))
    column = sampler.names.index("tile_h")
    share = Counter(everything[:, column].tolist())
    seen = Counter(drawn[:, column].tolist())
    for value, count in share.items():
        if count > 500:
            ratio = (seen[value] / len(drawn)) / (count / len(everything))
            assert 0.3 < ratio < 3, (value, ratio)


def test_neighbours_are_valid_and_near() -> None:
    space = conv_like_space(28, 28, 4, 4, 3)
    sampler, rng = Sampler(space), np.random.default_rng(3)
    for point in sampler.sample(10, rng):
        near = sampler.neighbours([point], rng, 12)
        assert near
        for other in near:
            assert not violations(space, other)
            changed = sum(other[t] != point[t] for t in sampler.tunables)
            assert 1 <= changed <= 2


def test_children_are_valid_and_mostly_of_their_parents() -> None:
    space = conv_like_space(28, 28, 4, 4, 3)
    sampler, rng = Sampler(space), np.random.default_rng(3)
    rows, _ = sampler.draw(60, rng)
    mothers, fathers = rows[:30], rows[30:]
    children = sampler.crossed(mothers, fathers, rng)
    assert len(children) >= 25
    assert all(not violations(space, p) for p in sampler.points(children))
    assert all(not violations(space, p) for p in sampler.points(sampler.crossed(rows, rows, rng)))


def test_children_are_drawn_where_enough_of_them_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler, rng = Sampler(conv_like_space()), np.random.default_rng(3)
    rows, _ = sampler.draw(40, rng)
    monkeypatch.delattr(Search, "beam")
    assert len(sampler.crossed(rows[:20], rows[20:], rng)) >= 15


def test_pairs_without_a_valid_child_among_those_drawn_get_one_by_search() -> None:
    """Of ten numbers in 0..9 that must all be equal, hardly a drawn child is valid."""
    names = [f"x{i}" for i in range(10)]
    space = SearchSpace(
        name="equal",
        version=1,
        variables=tuple(Variable(name=n, domain=tuple(range(10))) for n in names),
        constraints=tuple(
            Le(name=f"{a}_{b}", left=a, bound=b)
            for pair in itertools.pairwise(names)
            for a, b in (pair, pair[::-1])
        ),
        default=(),
    )
    sampler = Sampler(space)
    rows = np.arange(10).repeat(10).reshape(10, 10)
    children = sampler.crossed(rows[:5], rows[5:], np.random.default_rng(0), loose_share=0.0)
    assert len(children) == 5
    assert (children == children[:, :1]).all()


def test_a_child_of_one_parent_differs_where_it_was_freed_only() -> None:
    sampler, rng = Sampler(conv_like_space()), np.random.default_rng(1)
    rows, _ = sampler.draw(40, rng)
    children = sampler.crossed(rows, rows, rng, loose_share=0.0)
    columns = [sampler.names.index(t) for t in sampler.tunables]
    nearest = [min((row[columns] != child[columns]).sum() for row in rows) for child in children]
    assert max(nearest) <= 1


def test_values_beyond_the_exact_range_of_floats_are_checked_in_whole_numbers() -> None:
    big = 2**53 + 1
    space = SearchSpace(
        name="big",
        version=1,
        variables=(
            Variable(name="x", domain=(1, 3)),
            Variable(name="y", tunable=False),
            Variable(name="z", tunable=False),
        ),
        constraints=(
            Prod(name="y", product="y", factors=("x",), coefficient=big),
            Sum(name="z", total="z", terms=((1, "y"),), constant=-big),
        ),
        default=(("x", 1),),
    )
    found = Sampler(space).enumerate(10)
    assert all(not violations(space, p) for p in found or ())
    assert Sampler(space).complete({"x": 3}) == {"x": 3, "y": 3 * big, "z": 2 * big}


def test_a_value_that_nobody_computes_is_found_by_bounds() -> None:
    """outer = ceil(extent / tile), said with two inequalities."""
    space = SearchSpace(
        name="ceil",
        version=1,
        variables=(
            Variable(name="extent", domain=(10,), tunable=False),
            Variable(name="tile", domain=(1, 2, 3, 4)),
            Variable(name="outer", domain=tuple(range(1, 11)), tunable=False),
            Variable(name="covered", tunable=False),
            Variable(name="room", tunable=False),
        ),
        constraints=(
            Prod(name="covered", product="covered", factors=("outer", "tile")),
            Le(name="enough", left="extent", bound="covered"),
            Sum(name="room", total="room", terms=((1, "extent"), (1, "tile")), constant=-1),
            Le(name="no_more", left="covered", bound="room"),
        ),
        default=(("tile", 1),),
    )
    points = Sampler(space).enumerate(100)
    assert {p["tile"]: p["outer"] for p in points or ()} == {1: 10, 2: 5, 3: 4, 4: 3}
    assert (Sampler(space).complete({"tile": 4}) or {})["outer"] == 3


def test_sampling_and_completing_are_fast() -> None:
    """Of processor time, which others on the machine cannot take; a tenth of it is usual."""
    space = conv_like_space(h=60, w=72, co=32, ci=32, kernel=5)
    sampler, rng = Sampler(space), np.random.default_rng(0)
    sampler.draw(1, rng)
    began = time.thread_time()
    points = sampler.sample(200, rng)
    sampled = time.thread_time()
    for point in points:
        sampler.complete(point)
    completed = time.thread_time()
    assert len(points) == 200
    assert sampled - began < 1.0
    assert (completed - sampled) / len(points) < 2e-3


@pytest.mark.parametrize("extent", [1, 2, 7, 360])
def test_divisors(extent: int) -> None:
    points = Sampler(pair_space(extent=extent, limit=extent)).enumerate(1000)
    assert tuple(sorted(p["inner"] for p in points or ())) == divisors(extent)
