"""`tilefarm targets fit`: what it reads, prints and writes, and every way in which it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from kit.search.stand_ins import toy_workload
from kit.search.timed_schedules import LAYERS, Hardware, predicted_records, wall_time, workloads
from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial
from tilefarm.target import TARGETS, BusTiming, Target, load_target
from tilefarm.trace import Trace

from driver.cli import main
from driver.tune.chosen_schedules import ChosenSchedule, schedules_text
from driver.tune.output import OutputFolder, RunIdentity
from tuner.schedule_store import ScheduleRecord, ScheduleStore
from tuner.trial_store import TrialStore

SIM: Final = TARGETS["sim"]
REALLY: Final = BusTiming(dram_delay_cycles=96)


def records(target: Target = SIM, *, count: int = 8, layers: int = 2) -> list[ScheduleRecord]:
    """Schedules that took what the estimate says of a slow memory."""
    hardware = Hardware(target=target, really=REALLY)
    return [
        record
        for workload in workloads(target, LAYERS[:layers])
        for record in predicted_records(hardware, workload, count=count)
    ]


def trial(record: ScheduleRecord, status: Status = Status.OK) -> Trial:
    is_good = status is Status.OK
    return Trial(
        workload=record.workload.digest,
        trace=record.trace,
        point=record.point,
        status=status,
        cycles=record.cycles if is_good else None,
        wall_time=record.wall_time if is_good else None,
        device="board0",
    )


def run_of(
    folder: Path, target: Target, found: Iterable[ScheduleRecord], status: Status = Status.OK
) -> Path:
    """The folder of a run that has ended."""
    kept = list(found)
    identity = RunIdentity(
        model=Digest.of(b"model"), target=target.digest, seed=0, proposer="guided"
    )
    OutputFolder.open(folder, identity, {"target": target.name})
    with TrialStore(folder / "records.sqlite") as store:
        store.begin_run("run", {}, begun=0.0)
        for each in kept:
            store.insert(trial(each, status), run="run")
    best = {each.workload: each for each in kept}
    chosen = (
        ChosenSchedule(workload=workload, trace=Trace(()), point=each.point)
        for workload, each in best.items()
    )
    (folder / "schedules.json").write_text(schedules_text(chosen))
    return folder


def file_of(path: Path, found: Sequence[ScheduleRecord]) -> Path:
    with ScheduleStore(path) as store:
        store.add(found)
    return path


def test_a_run_is_fitted_and_written_as_a_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(tmp_path / "night", SIM, records())
    out = tmp_path / "fitted.json"
    assert main(["targets", "fit", str(run), "-o", str(out)]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "sim: 16 trials of 2 workloads in cycles, by board0"
    rows = {line.split()[0]: line.split()[1:] for line in lines if line}
    assert rows["dram_delay_cycles"] == ["16", "96"]
    assert rows["mean"][3:5] == ["0.0", "(0.0)"]
    assert lines[-1] == f"{out}: the target sim-fitted-night"
    assert "without workload 2 of 2: bus_nbytes 8, " in said.err
    fitted = load_target(str(out))
    assert (fitted.name, fitted.timing) == ("sim-fitted-night", REALLY)
    assert replace(fitted, name="sim", timing=SIM.timing) == SIM
    assert fitted.digest != SIM.digest


def test_a_fitted_target_is_fitted_again_under_a_short_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = replace(SIM, name="sim-fitted-one", timing=BusTiming(dram_delay_cycles=64))
    (tmp_path / "one.json").write_text(first.to_json())
    path = file_of(tmp_path / "two.sqlite", [*records(first), *records(SIM)])
    words = ["--records", str(path), "--target", str(tmp_path / "one.json"), "--json"]
    assert main(["targets", "fit", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["parameters"]["dram_delay_cycles"] == {"before": 64, "after": 96}
    assert told["fitted"]["name"] == "sim-fitted-two"
    assert (told["objection"], told["trials"]) == ("", 16)
    assert [row["trials"] for row in told["workloads"]] == [8, 8]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command; gives its error after checking its form."""

    def run(*words: str | Path) -> str:
        assert main(["targets", "fit", *map(str, words)]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert lines[-2].startswith("tilefarm targets fit: ")
        assert lines[-1].startswith("  try: ")
        return lines[-2]

    return run


def test_one_workload_is_reported_and_not_written(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    path = file_of(tmp_path / "team.sqlite", records(count=12, layers=1))
    out = tmp_path / "fitted.json"
    assert "one workload alone" in refused("--records", path, "-o", out)
    assert not out.exists()


def test_no_trials_are_named(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "no trials are named" in refused()
    assert "no records of a run" in refused(tmp_path)
    assert "no such file" in refused("--records", tmp_path / "none.sqlite")
    assert "end with .json" in refused(tmp_path, "-o", "fitted")
    assert "there is no folder" in refused(tmp_path, "-o", tmp_path / "no/fitted.json")


def test_runs_without_a_time(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "empty: no trials" in refused(run_of(tmp_path / "empty", SIM, []))
    failed = run_of(tmp_path / "failed", SIM, records(count=2), Status.RUN_CRASH)
    assert "none of its trials has a time: 4 run_crash" in refused(failed)
    stopped = run_of(tmp_path / "stopped", SIM, records(count=2))
    (stopped / "schedules.json").unlink()
    assert "has not ended" in refused(stopped)
    (stopped / "run.json").write_text("{}")
    assert "run.json: not a file that tilefarm wrote" in refused(stopped)


def test_several_targets(refused: Callable[..., str], tmp_path: Path) -> None:
    other = TARGETS["sim-de10"]
    runs = [run_of(tmp_path / t.name, t, records(t, count=1)) for t in (SIM, other)]
    assert "measured on several targets: sim, sim-de10; " in refused(*runs)
    assert "on another target than sim-de10: sim" in refused(runs[0], "--target", "sim-de10")
    path = file_of(tmp_path / "team.sqlite", [])
    assert "team.sqlite: no schedules of sim" in refused("--records", path, "--target", "sim")


def test_processors_and_targets_of_nobody(refused: Callable[..., str], tmp_path: Path) -> None:
    cpu = load_target("cpu")
    measured = [replace(r, target=cpu.digest, target_name="cpu") for r in records(count=1)]
    run = run_of(tmp_path / "cpu", cpu, measured)
    assert "cpu: a processor, and what is fitted is the estimate of an acc" in refused(run)
    assert "cpu: a processor" in refused(run, "--target", "cpu")
    mine = replace(SIM, name="mine", timing=BusTiming(bus_nbytes=32))
    assert "mine: no target that is built in" in refused(run_of(tmp_path / "m", mine, measured))


def test_two_clocks(refused: Callable[..., str], tmp_path: Path) -> None:
    one, *_, other = records(count=2)
    seconds = replace(other, cycles=None, wall_time=wall_time(1e-4))
    path = file_of(tmp_path / "team.sqlite", [one, seconds])
    assert "some trials are told in cycles and others in seconds" in refused("--records", path)


def test_times_that_cannot_be_and_schedules_that_are_none(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    fast, _, timed, other = records(count=2)
    strange = [
        replace(fast, cycles=10),
        replace(other, trace=Digest.of(b"another")),
        replace(fast, workload=replace(toy_workload(1), operator="softmax")),
    ]
    said = refused("--records", file_of(tmp_path / "team.sqlite", strange))
    assert "1 trial with an impossible time" in said
    assert "1 trial whose point means another schedule by now" in said
    assert "1 trial of layers that run on the processor" in said
    timed = replace(timed, cycles=None, wall_time=wall_time(1e-9))
    said = refused("--records", file_of(tmp_path / "timed.sqlite", [timed]))
    assert "nothing to fit sim to: 1 trial with an impossible time" in said


def test_a_target_is_shown_or_fitted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["targets", "--show", "sim", "fit", str(tmp_path)]) == 2
    assert "--show sim: prints a target, and fit makes one" in capsys.readouterr().err
