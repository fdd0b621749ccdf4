"""Which workload gets the next trial."""

from __future__ import annotations

from kit.search.toy_spaces import timed, trial_of
from tilefarm.measurement import Status

from tuner.allocate import TaskScheduler, TaskWeight


def ok(scheduler: TaskScheduler, name: str, cycles: int) -> None:
    scheduler.tell(name, trial_of({"x": cycles}, cycles=cycles))


def test_warm_up_goes_round() -> None:
    scheduler = TaskScheduler({n: TaskWeight(weight=1) for n in "abc"}, warm_up=2)
    assert [scheduler.next_task() for _ in range(6)] == list("abcabc")


def test_the_heavier_task_gets_more() -> None:
    scheduler = TaskScheduler(
        {"light": TaskWeight(weight=1), "heavy": TaskWeight(weight=4)}, warm_up=1
    )
    for name in ("light", "heavy"):
        scheduler.next_task()
        ok(scheduler, name, 1000)
    shares = [scheduler.next_task() for _ in range(50)]
    assert 35 <= shares.count("heavy") <= 45


def test_a_task_near_its_bound_gets_little_and_at_its_bound_nothing() -> None:
    scheduler = TaskScheduler(
        {
            "near": TaskWeight(weight=1, lower_bound_cycles=900),
            "far": TaskWeight(weight=1, lower_bound_cycles=100),
            "there": TaskWeight(weight=1, lower_bound_cycles=990),
        },
        warm_up=1,
    )
    for name in ("near", "far", "there"):
        scheduler.next_task()
        ok(scheduler, name, 1000)
    shares = [scheduler.next_task() for _ in range(40)]
    assert shares.count("there") == 0
    assert shares.count("far") > 4 * shares.count("near") > 0


def test_a_task_that_still_improves_is_preferred() -> None:
    scheduler = TaskScheduler(
        {"flat": TaskWeight(weight=1), "falling": TaskWeight(weight=1)}, warm_up=4
    )
    for k in range(4):
        scheduler.next_task(), scheduler.next_task()
        ok(scheduler, "flat", 1000)
        ok(scheduler, "falling", 4000 - 1000 * k)
    assert scheduler.next_task() == "falling"


def test_a_task_that_only_fails_does_not_eat_the_budget() -> None:
    scheduler = TaskScheduler(
        {"broken": TaskWeight(weight=9), "good": TaskWeight(weight=1)}, warm_up=2
    )
    asked = []
    for k in range(40):
        name = scheduler.next_task()
        assert name is not None
        asked.append(name)
        if name == "good":
            ok(scheduler, name, 1000 - k)
        else:
            scheduler.tell(name, trial_of({"x": k}, Status.COMPILE_ERROR))
    assert asked.count("broken") == 8


def test_what_is_out_counts_as_no_gain() -> None:
    """Whatever a task has gained, it does not get all that is asked for before more is known."""
    scheduler = TaskScheduler(
        {"fell": TaskWeight(weight=1), "flat": TaskWeight(weight=1)}, warm_up=4
    )
    for k in range(4):
        scheduler.next_task(), scheduler.next_task()
        ok(scheduler, "fell", 1000 + 9000 * (k == 0))
        ok(scheduler, "flat", 1000)
    shares = [scheduler.next_task() for _ in range(60)]
    assert shares[:4] == ["fell"] * 4
    assert 20 <= shares.count("flat") <= 30


def test_what_nothing_is_known_of_is_asked_for_in_turn() -> None:
    scheduler = TaskScheduler({n: TaskWeight(weight=1) for n in "abc"}, warm_up=2)
    asked = [scheduler.next_task() for _ in range(60)]
    assert {name: asked.count(name) for name in "abc"} == {"a": 20, "b": 20, "c": 20}


def test_a_task_without_a_good_end_has_a_warm_up_of_trials_out_at_most() -> None:
    scheduler = TaskScheduler(
        {"unknown": TaskWeight(weight=1), "good": TaskWeight(weight=1)}, warm_up=3
    )
    for name in ("unknown", "good") * 3:
        assert scheduler.next_task() == name
    ok(scheduler, "good", 1000)
    assert [scheduler.next_task() for _ in range(5)] == ["good"] * 5
    scheduler.tell("unknown", trial_of({"x": 1}, Status.RUN_CRASH))
    assert [scheduler.next_task() for _ in range(3)] == ["unknown", "good", "good"]


def test_closed_tasks_get_nothing() -> None:
    scheduler = TaskScheduler({"a": TaskWeight(weight=1), "b": TaskWeight(weight=1)}, warm_up=1)
    scheduler.close("a")
    assert scheduler.next_task() == "b"
    scheduler.close("b")
    assert scheduler.next_task() is None


def time(scheduler: TaskScheduler, name: str, seconds: float, noise: float = 0.0) -> None:
    scheduler.tell(name, trial_of({"x": 1}, wall_time=timed(seconds, noise)))


def test_seconds_are_shared_out_as_cycles_are() -> None:
    scheduler = TaskScheduler(
        {"light": TaskWeight(weight=1), "heavy": TaskWeight(weight=4)}, warm_up=1
    )
    for name in ("light", "heavy"):
        scheduler.next_task()
        time(scheduler, name, 1e-5)
    shares = [scheduler.next_task() for _ in range(50)]
    assert 35 <= shares.count("heavy") <= 45


def test_a_bound_in_cycles_says_nothing_about_seconds() -> None:
    weights = {
        "cycles": TaskWeight(weight=1, lower_bound_cycles=10),
        "seconds": TaskWeight(weight=1, lower_bound_cycles=10, lower_bound_seconds=1e-5),
    }
    scheduler = TaskScheduler(weights, warm_up=1)
    for name in weights:
        scheduler.next_task()
        time(scheduler, name, 1.01e-5)
    assert {scheduler.next_task() for _ in range(20)} == {"cycles"}


def test_no_cycles_close_no_task() -> None:
    scheduler = TaskScheduler({"a": TaskWeight(weight=1)}, warm_up=1)
    scheduler.next_task()
    ok(scheduler, "a", 0)
    assert scheduler.next_task() == "a"


def test_a_gain_within_the_noise_is_none_and_several_add_up() -> None:
    """The bound closes a task whose best has come near to it; here it is the only one."""

    def next_after(*costs: float, noise: float) -> str | None:
        weights = {"only": TaskWeight(weight=1, lower_bound_seconds=1e-5)}
        scheduler = TaskScheduler(weights, warm_up=1)
        for cost in costs:
            time(scheduler, "only", 1e-5 * cost, noise)
        return scheduler.next_task()

    assert next_after(1.03, 1.015, noise=0.001) is None
    assert next_after(1.03, 1.015, noise=0.02) == "only"
    assert next_after(1.05, 1.035, noise=0.02) == "only"
    assert next_after(1.05, 1.035, 1.015, noise=0.02) is None


def hopeful(least_gain: float, **weights: int) -> TaskScheduler:
    """Every task has one trial of 1000 cycles, and nothing is hoped yet."""
    tasks = {name: TaskWeight(weight=weight) for name, weight in weights.items()}
    scheduler = TaskScheduler(tasks, warm_up=8, least_gain=least_gain)
    scheduler.expect(dict.fromkeys(weights))
    for name in weights:
        assert scheduler.next_task() == name, "one trial is enough to begin with"
        ok(scheduler, name, 1000)
    return scheduler


def test_the_task_with_the_largest_hope_comes_first_and_what_is_out_shares_it() -> None:
    scheduler = hopeful(0.0, light=1, heavy=3)
    scheduler.expect({"light": 400.0, "heavy": 910.0})
    assert [scheduler.next_task() for _ in range(3)] == ["light", "light", "heavy"]


def test_nobody_gets_more_when_all_that_is_left_could_gain_too_little() -> None:
    scheduler = hopeful(0.01, a=1, b=3)
    scheduler.expect({"a": 950.0, "b": 1100.0})
    assert scheduler.could_gain == 50 / 4000
    assert scheduler.next_task() == "a"
    scheduler.expect({"a": 970.0, "b": 1100.0})
    assert scheduler.next_task() is None
    scheduler.expect({"a": 970.0, "b": 980.0})
    assert scheduler.next_task() == "b"


def test_where_nothing_is_known_of_an_open_task_no_search_ends() -> None:
    scheduler = hopeful(0.5, a=1, b=1)
    scheduler.expect({"a": 1000.0, "b": None})
    assert scheduler.next_task() is not None
    scheduler.close("b")
    assert scheduler.next_task() is None


def test_a_hope_below_the_bound_is_none() -> None:
    scheduler = TaskScheduler({"a": TaskWeight(lower_bound_cycles=960)}, warm_up=1)
    scheduler.expect({"a": 500.0})
    scheduler.next_task()
    ok(scheduler, "a", 1000)
    assert scheduler.could_gain == 0.04
