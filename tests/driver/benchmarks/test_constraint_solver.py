"""CP-SAT and our own solver say the same of a space."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.search.random_spaces import NAMES, brute_force, spaces
from kit.search.toy_spaces import conv_like_space
from tilefarm.space import SearchSpace

from driver.benchmarks.tuner.constraint_solver import count, is_there, solution
from tuner.sampler import Sampler

pytestmark = pytest.mark.skipif(not is_there(), reason="OR-Tools is not installed")


@settings(max_examples=examples(40), deadline=None)
@given(spaces())
def test_the_oracle_counts_what_the_sampler_finds(space: SearchSpace) -> None:
    found = Sampler(space).enumerate(10_000)
    assert found is not None
    assert count(space) == len(found) == len(brute_force(space))


@settings(max_examples=examples(20), deadline=None)
@given(spaces())
def test_a_solution_is_a_point_and_there_is_one_if_the_space_has_any(space: SearchSpace) -> None:
    chosen = solution(space, 0, {})
    good = [dict(zip(NAMES, values, strict=True)) for values in brute_force(space)]
    assert (chosen is not None) == bool(good)
    assert chosen is None or any(chosen.items() <= point.items() for point in good)


def test_a_solution_of_a_layer_like_space_is_completed() -> None:
    space = conv_like_space(14, 14, 2, 2, 3)
    sampler = Sampler(space)
    (hint,) = sampler.sample(1, np.random.default_rng(0))
    chosen = solution(space, 1, {name: hint[name] for name in sampler.tunables})
    assert chosen is not None
    assert sampler.complete(chosen) is not None
