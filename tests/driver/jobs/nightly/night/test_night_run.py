"""A night goes on wherever it was killed, keeps its budget, and loses no row for another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kit.kernels.nests import SIM, dense
from kit.manual_clock import ManualClock
from kit.reports.nightly_runs import StandInRows, tile_of
from tilefarm.digest import Digest
from tilefarm.errors import OutputError
from tilefarm.trace import Step, Trace

from compile_worker.space import generate
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.kernels import kept_kernels
from driver.jobs.nightly.night.events import NightEvent, NightNotice, RowBegan, RowDone, RowLeft
from driver.jobs.nightly.night.night import HISTORY, MeasuredNight, measure_night
from driver.jobs.nightly.night.night_run import NightSettings
from driver.jobs.nightly.night.publishing import Outputs
from driver.jobs.nightly.night.row_process import RowEnd
from driver.jobs.nightly.records import Pass, Row, Verdict
from driver.jobs.nightly.why import Evidence
from driver.jobs.nightly.zoo_file import NightBudget, Zoo, ZooRow
from driver.network import forget_plugins
from driver.tune.chosen_schedules import ChosenSchedule

BEGAN = 1_795_000_000.0
HOUR, DAY = 3600.0, 86_400.0
MODELS = ("zoo:a", "zoo:b", "zoo:c")


def row(model: str, *words: str, fault: str = "") -> ZooRow:
    return ZooRow(row=Row(model, "sim"), model=model, words=words, fault=fault)


ROWS = tuple(map(row, MODELS))


class Nights:
    """The nights of one folder, and what was told of the last one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(BEGAN)
        self.runner = StandInRows()
        self.told: list[NightEvent] = []
        self.listen: Callable[[NightEvent], None] = lambda event: None

    def measure(
        self,
        *rows: ZooRow,
        seconds: float = HOUR,
        every: float = 0.0,
        at_a_time: int = 1,
        keep: int = 7,
    ) -> MeasuredNight:
        self.told = []
        zoo = Zoo(name="zoo", night=NightBudget(keep=keep), rows=rows or ROWS)
        settings = NightSettings(
            folder=self.folder,
            rows=zoo.rows,
            seconds=seconds,
            every_seconds=every,
            at_a_time=at_a_time,
        )
        return measure_night(
            settings, zoo, Outputs(), self._hear, clock=self.clock, runner=self.runner
        )

    def _hear(self, event: NightEvent) -> None:
        self.told.append(event)
        self.listen(event)

    def history(self) -> History:
        return History(self.folder / HISTORY, read_only=True)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        done = [event.judged for event in self.told if isinstance(event, RowDone)]
        return {judged.row.model: judged.verdict for judged in done}

    @property
    def reasons(self) -> dict[str, str]:
        done = [event.judged for event in self.told if isinstance(event, RowDone)]
        return {judged.row.model: judged.why for judged in done}

    @property
    def without_code(self) -> list[str]:
        texts = [event.text for event in self.told if isinstance(event, NightNotice)]
        return [text for text in texts if "no code of" in text]

    def parts(self) -> list[tuple[str, Pass, float]]:
        with self.history() as history:
            return [(s.row.model, s.part, s.time.cost) for s in history.samples()]


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def test_what_a_night_finds_the_next_one_compiles(nights: Nights) -> None:
    only = row("zoo:a")
    nights.measure(only)
    assert nights.verdicts == {"zoo:a": Verdict.INSUFFICIENT_HISTORY}
    nights.clock.sleep(DAY)
    nights.runner.finds = lambda model: 4
    nights.measure(only)
    assert nights.verdicts == {"zoo:a": Verdict.UNCHANGED}
    nights.clock.sleep(DAY)
    nights.runner.finds = lambda model: None
    nights.measure(only)
    assert nights.verdicts == {"zoo:a": Verdict.UNCHANGED}
    assert nights.parts() == [
        ("zoo:a", Pass.FOUND, 8000.0),
        ("zoo:a", Pass.KNOWN, 8000.0),
        ("zoo:a", Pass.FOUND, 2000.0),
        ("zoo:a", Pass.KNOWN, 2000.0),
    ]


def test_slower_code_fails_though_a_search_makes_up_for_it(nights: Nights) -> None:
    nights.measure(row("zoo:a"))
    nights.clock.sleep(DAY)
    nights.runner.cycles, nights.runner.finds = 9000, lambda model: 4
    assert nights.measure(row("zoo:a")).fails
    assert nights.verdicts == {"zoo:a": Verdict.SLOWER}


def test_the_first_night_takes_the_better_of_estimate_and_search(nights: Nights) -> None:
    nights.runner.finds = lambda model: 2 if model == "zoo:a" else None
    nights.measure()
    assert nights.parts() == [
        ("zoo:a", Pass.FOUND, 4000.0),
        ("zoo:b", Pass.FOUND, 8000.0),
        ("zoo:c", Pass.FOUND, 8000.0),
    ]
    with nights.history() as history:
        adopted = [history.adopted(each.row) for each in ROWS]
        tiles = [tile_of(history.schedules(each.schedules)) for each in adopted if each]
    assert tiles == [2, 1, 1]


def test_what_answers_otherwise_is_not_adopted(nights: Nights) -> None:
    def find(model: str) -> int:
        nights.runner.answers = "others"
        return 4

    nights.runner.finds = find
    nights.measure(row("zoo:a"))
    assert nights.parts() == [("zoo:a", Pass.FOUND, 8000.0)]


def test_a_row_in_trouble_costs_itself_alone(nights: Nights) -> None:
    nights.runner.ends["zoo:b"] = RowEnd(code=3, said="no device with target sim within 30 s")
    nights.runner.ends["zoo:c"] = RowEnd(code=-9)
    found = nights.measure(*ROWS, row("zoo:d", fault="no such key"), row("zoo:e", "--target", "no"))
    assert found.fails
    assert not found.left
    assert nights.verdicts.pop("zoo:a") is Verdict.INSUFFICIENT_HISTORY
    reasons = nights.reasons
    assert reasons["zoo:b"] == "no device with target sim within 30 s"
    assert reasons["zoo:c"] == "its process was ended by signal 9"
    assert reasons["zoo:d"] == "no such key"
    assert reasons["zoo:e"].startswith("unknown target 'no'")


def test_rows_beyond_the_budget_are_not_measured_and_come_first_the_next_night(
    nights: Nights,
) -> None:
    nights.runner.before = lambda model: nights.clock.sleep(0.6 * HOUR)
    nights.measure()
    assert nights.reasons["zoo:c"] == "the night's 3600 s were over before it began"
    nights.clock.sleep(DAY)
    nights.measure()
    began = [event.row.model for event in nights.told if isinstance(event, RowBegan)]
    assert began == ["zoo:c", "zoo:a"]


def test_a_row_has_no_more_for_its_search_than_its_share(nights: Nights) -> None:
    nights.measure(seconds=300.0)
    shares = [command[command.index("--search-seconds") + 1] for command in nights.runner.asked]
    assert shares == ["50.0", "75.0", "150.0"]


class KilledError(BaseException):
    """Nothing of the night goes on."""


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_a_night_that_is_killed_at_any_step_ends_like_any_other(
    nights: Nights, tmp_path: Path, at_a_time: int
) -> None:
    undisturbed = Nights(tmp_path / "undisturbed")
    undisturbed.folder.mkdir()
    for each in (nights, undisturbed):
        each.runner.finds = lambda model: 2
        each.measure()
        each.clock.sleep(DAY)
        each.runner.finds = lambda model: 4 if model == "zoo:b" else None
    undisturbed.measure()
    left, kills = 0, 0

    def kill(event: NightEvent) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KilledError

    nights.listen = kill
    for steps in (*range(1, 9), 0):
        left = steps
        try:
            nights.measure(at_a_time=at_a_time)
        except KilledError:
            kills += 1
        else:
            break
    assert kills > 2
    assert nights.parts() == undisturbed.parts()
    with nights.history() as ours, undisturbed.history() as theirs:
        assert ours.verdicts() == theirs.verdicts()
        assert ours.adoptions() == theirs.adoptions()
        assert [night.name for night in ours.nights()] == [n.name for n in theirs.nights()]
    assert nights.runner.measured == undisturbed.runner.measured
    assert max(nights.runner.measured.values()) == 2  # once each night


def test_a_full_disk_leaves_its_row_to_the_same_command(nights: Nights) -> None:
    nights.runner.full = {"zoo:b"}
    found = nights.measure()
    assert found.left == (Row("zoo:b", "sim"),)
    (left,) = (event for event in nights.told if isinstance(event, RowLeft))
    assert "No space left on device" in left.why
    assert set(nights.verdicts) == {"zoo:a", "zoo:c"}
    assert not nights.measure().left
    assert set(nights.verdicts) == {"zoo:b"}
    with nights.history() as history:
        assert len(history.nights()) == 1


def test_a_run_that_can_be_continued_is(nights: Nights) -> None:
    nights.runner.ends["zoo:a"] = RowEnd(code=75, said="the cluster is gone")
    assert nights.measure().left == (Row("zoo:a", "sim"),)
    del nights.runner.ends["zoo:a"]
    assert not nights.measure().left


def test_a_night_that_nobody_continued_in_its_time_is_given_up(nights: Nights) -> None:
    nights.runner.full = {"zoo:b"}
    nights.measure()
    nights.clock.sleep(DAY)
    nights.measure()
    with nights.history() as history:
        first, second = history.nights()
        (given_up,) = history.verdicts(night=first.name, row=Row("zoo:b", "sim"))
    assert given_up.verdict is Verdict.NOT_MEASURED
    assert given_up.why == "it was stopped, and not continued within its 3600 s"
    assert first.why_ended == given_up.why
    assert not second.why_ended


def test_a_night_keeps_what_its_code_makes_of_each_schedule(nights: Nights) -> None:
    nights.measure(row("zoo:a"))
    with nights.history() as history:
        (sample,) = history.samples()
        (chosen,) = history.schedules(sample.schedules)
        kept = kept_kernels(history, sample.night, sample.machine.target, [chosen])
    made = Evidence.read(kept[chosen])
    assert made.workload == chosen.workload.name
    assert nights.without_code == [f"zoo:a on sim: no code of {made.workload} is kept: {made.why}"]


def test_a_night_lowers_with_the_plugin_of_its_row_where_that_is_what_it_was(
    nights: Nights,
) -> None:
    text = (
        b"from compile_worker.plugins.custom_pass import custom_pass\n"
        b"@custom_pass(after='flatten')\ndef tidied_in_row(func, target):\n    return func\n"
    )
    plugin = nights.folder / "passes.py"
    plugin.write_bytes(text)
    workload, space = dense(ci=2, co=2), generate(dense(ci=2, co=2), SIM)
    plain = space.trace(dict(space.space.default))
    step = Step("lower_with", ("tidied_in_row", Digest.of(text).hex))
    nights.runner.chosen = lambda tile: (
        ChosenSchedule(
            workload=workload, trace=Trace((*plain.steps, step)), point=(("tile", tile),)
        ),
    )

    def edited(model: str) -> None:
        plugin.write_bytes(text + b"# edited" * (model == "zoo:b"))

    nights.runner.before = edited
    words = ("--plugin", str(plugin))
    nights.measure(row("zoo:b", *words), row("zoo:a", *words))
    (line,) = nights.without_code
    assert line.startswith("zoo:b on sim: no code of dense")
    assert "needs the pass tidied_in_row of the plugin" in line
    forget_plugins()


def test_two_nights_at_once_are_refused(nights: Nights) -> None:
    refusals = list[str]()

    def another(model: str) -> None:
        with pytest.raises(OutputError) as refused:
            Nights(nights.folder).measure()
        refusals.append(refused.value.what)

    nights.runner.before = another
    nights.measure(row("zoo:a"))
    assert len(refusals) == 1
    assert HISTORY in refusals[0]


def test_rows_of_our_own_clock_are_alone(nights: Nights) -> None:
    nights.runner.seconds = (0.9, 1.0, 1.1)
    clocked = [replace(row(f"zoo:{name}", "--target", "cpu")) for name in "de"]
    nights.measure(*clocked, at_a_time=2)
    assert nights.runner.beside == [1, 1]


def test_by_a_clock_only_what_is_clearly_faster_is_adopted(nights: Nights) -> None:
    nights.runner.seconds = (0.9, 1.0, 1.1)
    clocked = row("zoo:a", "--target", "cpu")
    nights.measure(clocked)
    nights.clock.sleep(DAY)
    nights.runner.finds = lambda model: 1
    nights.measure(clocked)
    nights.clock.sleep(DAY)
    nights.runner.finds = lambda model: 2
    nights.measure(clocked)
    assert [part for _, part, _ in nights.parts()] == [
        Pass.FOUND,
        Pass.KNOWN,
        Pass.KNOWN,
        Pass.FOUND,
    ]
    with nights.history() as history:
        times = [sample.time for sample in history.samples()]
        assert {time.control for time in times} == {1e-3}
        assert all(time.again == pytest.approx(time.cost) for time in times)


def test_folders_of_old_nights_go_and_the_history_stays(nights: Nights) -> None:
    (nights.folder / "nights" / "mine").mkdir(parents=True)
    for _ in range(3):
        nights.measure(row("zoo:a"), keep=2)
        nights.clock.sleep(DAY)
    assert len([*(nights.folder / "nights").iterdir()]) == 3  # two nights, and somebody's folder
    with nights.history() as history:
        assert len(history.nights()) == 3


def test_a_night_is_not_begun_anew_right_after_one_that_fails(nights: Nights) -> None:
    nights.runner.ends["zoo:b"] = RowEnd(code=70, said="why")
    assert nights.measure(every=DAY / 2).fails
    nights.clock.sleep(HOUR)
    assert nights.measure(every=DAY / 2).fails
    with nights.history() as history:
        assert len(history.nights()) == 1
    nights.clock.sleep(DAY / 2)
    nights.measure(every=DAY / 2)
    with nights.history() as history:
        assert len(history.nights()) == 2


def test_a_clock_that_went_back_is_said(nights: Nights) -> None:
    nights.measure(row("zoo:a"))
    nights.clock = ManualClock(BEGAN - DAY)
    nights.measure(row("zoo:a"))
    assert any(isinstance(e, NightNotice) and "the clock went back" in e.text for e in nights.told)


def test_a_page_that_was_not_written_is_written_by_the_same_command(nights: Nights) -> None:
    def full(event: NightEvent) -> None:
        if isinstance(event, NightNotice) and event.text.startswith("page"):
            raise KilledError

    nights.listen = full
    with pytest.raises(KilledError):
        nights.measure(row("zoo:a"))
    nights.listen = lambda event: None
    nights.measure(row("zoo:a"))
    assert (nights.folder / "page" / "index.html").exists()
    with nights.history() as history:
        assert len(history.nights()) == 1
