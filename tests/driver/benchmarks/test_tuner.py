"""`tilefarm bench tuner`: searches in exact cycles, counted and judged."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from kit.search.toy_spaces import conv_like_cycles, conv_like_space, trial_of, with_estimate
from tilefarm.measurement import Trial
from tilefarm.space import Point, SearchSpace
from tilefarm.target import TARGETS

from driver import cli
from driver.benchmarks.tuner.ablations import ABLATIONS
from driver.benchmarks.tuner.cases import BEST_KNOWN, GROUPS, QUICK
from driver.benchmarks.tuner.command import group_figures
from driver.benchmarks.tuner.conversations import Conversation, conversation, quantile
from driver.benchmarks.tuner.curves import curves_page, search_curve
from driver.benchmarks.tuner.measured_space import MeasuredSpace
from driver.benchmarks.tuner.tasks import CaseResult
from driver.benchmarks.tuner.template_space import (
    TemplateTask,
    measure_template,
    template_space,
)
from driver.benchmarks.tvm_flow import TemplatePoint
from driver.benchmarks.workloads import workloads
from driver.tune.autotvm.template import SPLITS, THREADS
from tuner import make_proposer
from tuner.proposer import Proposer
from tuner.sampler import Sampler

SIM = TARGETS["sim"]


def random_search(space: SearchSpace, seed: int) -> Proposer:
    return make_proposer("random", space, seed)


@pytest.fixture(scope="module")
def measured() -> MeasuredSpace:
    return MeasuredSpace(workloads(SIM)["mean of all"], SIM)


def test_a_point_is_simulated_once(measured: MeasuredSpace) -> None:
    searches = [conversation(random_search, measured, seed=1, trials=4) for _ in range(2)]
    assert searches[0] == searches[1]
    assert measured.count == 4
    assert searches[0].reported == min(searches[0].cycles) == measured.least


def test_a_noisy_clock_is_the_same_for_the_same_seed_and_tells_no_cycles(
    measured: MeasuredSpace,
) -> None:
    point = measured.sampler.default()
    assert point is not None
    times = [measured.trial(point, noise=0.02, seed=seed) for seed in (1, 1, 2)]
    assert times[0] == times[1] != times[2]
    assert times[0].cycles is None
    assert times[0].noise > 0


def test_without_constraints_most_points_fail(measured: MeasuredSpace) -> None:
    make = ABLATIONS["without constraints"]
    told = conversation(make, measured, seed=0, trials=12)
    assert len(told.cycles) == 12
    assert math.inf in told.cycles


class Listed:
    """Proposes the points it is given."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = [*points]

    def ask(self, n: int) -> list[Point]:
        asked, self._points = self._points[:n], self._points[n:]
        return asked

    def tell(self, trials: Sequence[Trial]) -> None:
        assert len(trials) == 1


def test_a_conversation_ends_with_its_space(measured: MeasuredSpace) -> None:
    point = measured.sampler.default()
    assert point is not None
    told = conversation(lambda space, seed: Listed([point]), measured, seed=0, trials=5)
    assert len(told.cycles) == 1


def test_trials_are_counted_from_one_to_the_first_that_is_near_enough() -> None:
    told = Conversation((math.inf, 300.0, 105.0, 100.0), 100.0)
    assert [told.trials_to(cycles) for cycles in (400, 105, 101, 99)] == [2, 3, 4, math.inf]


def test_quantiles_are_values() -> None:
    assert [quantile([3.0, 1.0, 2.0, 9.0], share) for share in (0.25, 0.5, 0.9)] == [1, 2, 9]


def test_a_curve_is_the_best_so_far_over_seeds_from_the_first_valid_trial_on() -> None:
    searches = [
        Conversation((math.inf, 400.0, 500.0), 400.0),
        Conversation((300.0, 200.0), 200.0),  # its space had two points
        Conversation((math.inf, 300.0, 100.0), 100.0),
    ]
    curve = search_curve("guided", searches, 100.0)
    assert curve.median == (math.inf, 3.0, 2.0)
    assert curve.low == (3.0, 2.0, 1.0)
    assert curve.high == (math.inf, 4.0, 4.0)


def test_a_page_has_a_chart_for_each_workload_and_nothing_beyond_its_edges() -> None:
    many = [Conversation((100.0 * seed, 100.0), 100.0) for seed in range(1, 40)]
    nothing = [Conversation((math.inf, math.inf), math.inf)]
    curves = [search_curve("guided", many, 100.0), search_curve("<random>", nothing, 100.0)]
    page = curves_page({"C2": curves, "D1": curves[1:]}, {"C2": 100.0, "D1": 100.0})
    assert page.count("<svg") == 2
    assert "&lt;random&gt;: nothing (1 seed)" in page
    assert "inf" not in page
    assert "nan" not in page
    heights = [float(down) for down in re.findall(r"V([0-9.]+)", page)]
    assert min(heights) >= 30


def test_a_page_that_cannot_be_written_is_said_before_the_first_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "absent" / "curves.html"
    assert cli.main(["bench", "tuner", "--quick", "--html", str(page)]) == 2
    assert str(page) in capsys.readouterr().err


def test_the_goals_are_those_of_the_guided_search() -> None:
    group = next(group for group in GROUPS if group.name == "matrix products")
    best = float(BEST_KNOWN["matmul"])
    slow = Conversation((2 * best,) * 3, 2 * best)
    searches = {"guided": (Conversation((best,), best),), "random": (slow,)}
    found = {"matmul": CaseResult(searches, best, 2)}
    figures = [*group_figures(group, found, ("guided", "random"), 3)]
    assert [figure.value for figure in figures] == [1, 1, 0, 4, 4, 100]
    assert [figure.goal for figure in figures] == [2, 8, 1, None, None, None]


def test_the_old_flow_is_a_table_of_what_it_has_measured() -> None:
    """The fast one is what the estimate likes best, so that one trial finds it."""
    slow = [TemplatePoint(1, 7, 1, tile_co, 1, 1, 90_000) for tile_co in (1, 2, 4)]
    points = (*slow, TemplatePoint(7, 7, 1, 8, 2, 1, 37_817))
    space = template_space(points)
    assert Sampler(space).enumerate(9) == [
        dict(zip((*SPLITS, *THREADS), row, strict=True))
        for row in sorted((p.tile_h, p.tile_w, p.tile_ci, p.tile_co, *threads(p)) for p in points)
    ]
    found = measure_template(TemplateTask(name="C10", points=points, target=SIM, seeds=1, trials=4))
    assert found.with_estimate == 1
    assert 1 < found.without_estimate <= 4


def threads(point: TemplatePoint) -> tuple[int, int]:
    return point.oc_nthread, point.h_nthread


@pytest.mark.parametrize("name", ["without estimate, importance-guided keys", "CP-SAT sampling"])
def test_an_ablation_asks_for_valid_points_that_are_new(name: str) -> None:
    if name not in ABLATIONS:
        pytest.skip("OR-Tools is not installed")
    space = with_estimate(conv_like_space(28, 28, 4, 4, 3))
    proposer, sampler, keys = ABLATIONS[name](space, 0), Sampler(space), set[tuple[int, ...]]()
    for _ in range(20):
        (point,) = proposer.ask(1)
        assert sampler.complete(point) is not None
        keys.add(sampler.key(point))
        proposer.tell([trial_of(point, cycles=conv_like_cycles(point))])
    assert len(keys) == 20


def test_every_case_has_a_best_known_and_one_group() -> None:
    names = [name for group in GROUPS for name in group.cases]
    assert sorted(names) == sorted(BEST_KNOWN)
    assert set(QUICK) < set(names)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--proposers", "best"], "there is no 'best'"),
        (["--seeds", "0"], "argument --seeds"),
        (["--trials", "0"], "--trials"),
    ],
)
def test_a_bad_word_is_one_line_and_what_to_try(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "tuner", "--quick", *words]) == 2
    assert reason in capsys.readouterr().err
