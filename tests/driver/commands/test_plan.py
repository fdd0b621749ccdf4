"""`tilefarm plan`: problems and networks in; text, documents and pages out; bad input in a line."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from kit.allocating import no_allocator
from kit.built import require
from tilefarm.target import TARGETS

from driver.benchmarks.memory.scratchpad_graphs import GraphKind, scratchpad_graph
from driver.cli import main
from driver.memory import Plan, Problem, validate
from tuner.trial_store import TrialStore

PROBLEM = scratchpad_graph(9, 7)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "problem.json"
    path.write_text(PROBLEM.to_json())
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = main(["plan", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_problem_is_planned_and_drawn(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, trace, table = (tmp_path / name for name in ("p.html", "t.json", "r.csv"))
    code, out, _ = said(
        capsys, file, "--effort", "2000", "--html", page, "--trace", trace, "--csv", table
    )
    assert code == 0
    assert "16 operations, 13 buffers" in out
    assert "engine   activities  busy ticks  share  critical" in out
    html = page.read_text()
    assert html.count("<svg") == 3, "engines, scratchpad, dram"
    assert "on the critical path" in html
    assert "idle for" in html
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["name"] for event in events if event["ph"] == "X"} >= {"compute 0", "load b0"}
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert rows[0].keys() >= {"id", "lower", "upper", "size", "offset"}


def test_the_list_scheduler_alone_plans_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, file, "--json", "--mode", "feasible")
    assert code == 0
    found = Plan.from_json(out)
    assert validate(PROBLEM, found)
    assert found.method.startswith("list scheduling")


def test_a_plan_is_replayed_with_the_samples_of_its_operations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ops = tuple(
        replace(op, duration_ticks=None, samples=(op.ticks, op.ticks + 1, 3 * op.ticks))
        for op in PROBLEM.ops
    )
    path = tmp_path / "sampled.json"
    path.write_text(replace(PROBLEM, ops=ops).to_json())
    code, out, _ = said(capsys, path, "--effort", "1")
    assert code == 0
    assert "in the median of 200 runs" in out
    assert "critical in most runs: " in out


def test_json_is_a_plan_that_can_be_compared(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(capsys, file, "--json", "--effort", "1")
    assert code == 0
    assert validate(PROBLEM, Plan.from_json(out))
    other, page = tmp_path / "other.json", tmp_path / "both.html"
    other.write_text(out)
    code, out, _ = said(capsys, file, "--effort", "2000", "--compare", other, "--html", page)
    assert code == 0
    assert out.count("engine   activities") == 2
    assert page.read_text().count("<h2>Engines</h2>") == 2


def test_a_network_is_planned_as_its_program_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "zoo:digits")
    assert code == 0
    assert "arena         6144   6144" in out


def test_what_is_infeasible_is_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = scratchpad_graph(9, 7, GraphKind(capacity_nbytes=640_000))
    file.write_text(small.to_json())
    code, out, _ = said(capsys, file)
    assert code == 1
    assert out.startswith("operation compute 1 needs 742044 bytes of scratchpad")
    code, out, _ = said(capsys, file, "--json")
    assert (code, list(json.loads(out))) == (1, ["infeasible"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ('{"schema": 3, "buffers": [], "ops": [{"name": 3}]}', "problem.ops[0].name: a text is"),
        (
            '{"schema": 3, "buffers": [], "ops": [{"name": "a", "reads": ["x"]}]}',
            "operation a uses the unknown buffer 'x'",
        ),
    ],
)
def test_bad_problems_are_one_line(
    file: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    code, _, err = said(capsys, file)
    assert code == 2
    assert words in err
    assert "Traceback" not in err


def test_files_that_are_not_there_or_of_another_problem(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = said(capsys, tmp_path / "none.json")
    assert code == 2
    assert "none.json" in err
    other = tmp_path / "plan.json"
    other.write_text(Plan(ops=(), residencies=()).to_json())
    code, _, err = said(capsys, file, "--compare", other)
    assert code == 2
    assert "is no plan of this problem (operations)" in err
    code, _, err = said(capsys, file, "--effort", "1", "--html", tmp_path / "none" / "p.html")
    assert code == 2
    assert "p.html" in err


def test_the_problem_of_the_help_is_one() -> None:
    from driver.commands.plan import EPILOG

    text = EPILOG[EPILOG.index('  {"schema"') : EPILOG.index("\n\nBesides")]
    problem = Problem.from_json(text)
    assert {op.name for op in problem.ops} == {"conv"}


CSV = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\n"


def test_lifetimes_are_given_offsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require(no_allocator)
    file, page, out_csv = (tmp_path / name for name in ("a.csv", "a.html", "out.csv"))
    file.write_text(CSV)
    code, out, _ = said(capsys, file, "--capacity", "8", "--html", page, "--csv", out_csv)
    assert code == 0
    assert out.splitlines()[0] == "4 buffers, peak 8 bytes, which is the smallest there is"
    assert page.read_text().count('class="tensor"') == 4
    offsets = {
        row["id"]: int(row["offset"]) for row in csv.DictReader(out_csv.read_text().splitlines())
    }
    assert sorted(offsets[name] for name in ("b1", "b3")) == [0, 4]
    code, out, _ = said(capsys, file, "--json")
    assert json.loads(out)["peak_nbytes"] == 8
    code, out, _ = said(capsys, file, "--capacity", "7")
    assert (code, out) == (1, "no allocation fits 7 bytes: 8 are needed at least\n")


def test_a_bad_row_or_a_schedule_s_option_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,lower,upper,size\nb1,0,x,4\n")
    code, _, err = said(capsys, file)
    assert code == 2
    assert "a.csv:2: " in err
    code, _, err = said(capsys, file, "--trace", tmp_path / "t.json")
    assert code == 2
    assert "--trace is of schedules" in err


def test_a_network_takes_what_its_records_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = TARGETS["sim"].digest.hex
    (tmp_path / "run.json").write_text(json.dumps({"target_digest": target}))
    TrialStore(tmp_path / "records.sqlite").close()
    layers = [{"layer": "conv1", "kernel": "conv2d_1x1x10x10_2co_3x3_s1_fbf8e1", "cycles": 2575}]
    (tmp_path / "summary.json").write_text(json.dumps({"profile": {"layers": layers}}))
    code, out, _ = said(capsys, "zoo:digits", "--measured", tmp_path)
    assert code == 0
    assert "a tick is a nanosecond; " in out
    assert "% of the time is modelled: " in out
    code, _, err = said(capsys, "zoo:digits", "--measured", tmp_path / "none" / "program")
    assert code == 2
    assert "no records of a run" in err


def test_a_capacity_is_of_lifetimes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, file, "--capacity", "4")
    assert code == 2
    assert "--capacity is of lifetimes in a .csv" in err


def test_measured_runs_are_of_networks(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, file, "--measured", file.parent)
    assert code == 2
    assert "--measured is of networks" in err


def test_several_samples_of_a_network_are_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "p.html"
    words = ("zoo:digits", "--throughput", "2", "--target", "sim-pynq-z1", "--html", page)
    code, out, _ = said(capsys, *words)
    assert code == 0
    assert "2 samples in flight, each in 3 stages: one every " in out
    assert "100.0% of the time is modelled" in out
    assert page.read_text().count("<svg") == 2, "engines and the arena"


def test_samples_in_flight_are_of_networks(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, file, "--throughput")
    assert code == 2
    assert "--throughput is of networks" in err
