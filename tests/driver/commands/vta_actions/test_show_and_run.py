"""`tilefarm vta show` and `run`: what people read, and the files beside it."""

from __future__ import annotations

import json
import xml.etree.ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kit.golden import Golden
from kit.kernels.programs import DENSE, DENSE_CYCLES, dense_program
from tilefarm.target import TARGETS

from device_server.vta.programs.program import with_target

from .conftest import Vta

Save = Callable[..., Path]


def test_a_program_is_shown_with_its_micro_ops(vta: Vta, save: Save, golden: Golden) -> None:
    code, out, _ = vta("show", save(), "--uops")
    assert code == 0
    golden(out)


def test_only_the_summary(vta: Vta, save: Save) -> None:
    _, out, _ = vta("show", save(), "--summary")
    assert out.splitlines()[0] == "program       dense"
    assert "compute" not in out


def test_what_is_shown_as_json(vta: Vta, save: Save) -> None:
    _, out, _ = vta("show", save(), "--json")
    document = json.loads(out)
    assert document["statistics"]["instructions"] == len(document["lines"]) == 9
    assert document["statistics"]["load_nbytes"] == {"uop": 4, "inp": 64, "wgt": 256}


def test_a_run_tells_where_time_went(vta: Vta, save: Save, golden: Golden) -> None:
    code, out, _ = vta("run", save())
    assert code == 0
    golden(out)


def test_a_run_as_json(vta: Vta, save: Save) -> None:
    _, out, _ = vta("run", save(), "--json")
    document = json.loads(out)
    assert document["counters"]["cycles"] == DENSE_CYCLES
    assert document["differences"] == []


def test_a_run_that_differs_from_its_file_says_so(vta: Vta, save: Save) -> None:
    code, out, _ = vta("run", save(cycles=3))
    assert code == 0
    assert "differs       cycles 168, expected 3" in out


def test_the_functional_model_has_no_time(vta: Vta, save: Save) -> None:
    code, out, _ = vta("run", save(), "--model", "functional")
    assert code == 0
    assert "cycles" not in out
    assert "differs" not in out


def test_other_bursts_take_other_time_and_break_no_promise(vta: Vta, save: Save) -> None:
    path = save()
    _, usual, _ = vta("run", path, "--json")
    _, short, _ = vta("run", path, "--json", "--len-bits", "2")
    assert json.loads(short)["counters"]["cycles"] > json.loads(usual)["counters"]["cycles"]
    assert json.loads(short)["differences"] == []


def test_the_timeline_as_trace_and_picture(vta: Vta, save: Save, tmp_path: Path) -> None:
    trace, svg = tmp_path / "t.json", tmp_path / "t.svg"
    code, _, _ = vta("run", save(), "--timeline", trace, "--svg", svg)
    assert code == 0
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    assert len(events) == 9
    assert {e["tid"] for e in events} == {"load", "compute", "store"}
    assert max(e["ts"] + e["dur"] for e in events) == DENSE_CYCLES + 1
    root = xml.etree.ElementTree.fromstring(svg.read_text())
    assert root.tag.endswith("svg")
    assert "% busy" in svg.read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--len-bits", "9"), "--len-bits 9: timing.log_burst_beats: 9 is not within 1..8"),
        (("--len-bits", "x"), "invalid int value"),
        (("--model", "quartus"), "invalid choice"),
        (("--model", "functional", "--svg", "x.svg"), "knows no time"),
        (("--svg", "/no/such/folder/x.svg"), "x.svg: cannot be written"),
    ],
)
def test_impossible_options_are_told(
    vta: Vta, save: Save, words: tuple[str, ...], why: str
) -> None:
    code, _, err = vta("run", save(), *words)
    assert code == 2
    assert why in err.splitlines()[0]


MULTIPLY = DENSE.replace("alu.shr.imm", "alu.mul.imm")


def test_what_a_hardware_lacks_is_found_where_it_is_asked_for(vta: Vta, save: Save) -> None:
    program = replace(dense_program(MULTIPLY), after=None)
    able = with_target(program.meta, TARGETS["sim-mul"])
    assert vta("run", save("able", program, meta=able))[0] == 0
    path = save(program=program)
    assert vta("run", path)[0] == 1
    code, out, _ = vta("run", path, "--strictness", "chisel")
    assert code == 1
    assert "error         mul at instruction 5: " in out
    code, out, _ = vta("run", path, "--strictness", "chisel", "--json")
    assert code == 1
    (finding,) = json.loads(out)["findings"]
    assert (finding["severity"], finding["rule"], finding["instruction"]) == ("error", "mul", 5)


def test_the_time_of_the_other_design_is_marked_as_an_estimate(vta: Vta, save: Save) -> None:
    code, out, _ = vta("run", save(), "--model", "hls")
    assert code == 0
    assert "hls, an estimate\n" in out
    assert "differs" not in out


def test_cycles_of_a_module_add_up(vta: Vta, save: Save) -> None:
    _, out, _ = vta("run", save())
    rows = [line.split() for line in out.splitlines() if line.startswith(("load ", "store "))]
    assert [sum(map(int, row[1:])) for row in rows] == [DENSE_CYCLES] * 2


@pytest.mark.parametrize("action", ["run", "show"])
def test_a_file_that_is_not_there_is_told(vta: Vta, tmp_path: Path, action: str) -> None:
    code, _, err = vta(action, tmp_path / "no.npz")
    assert code == 2
    what, remedy = err.splitlines()
    path = tmp_path / "no.npz"
    assert what == f"tilefarm vta {action}: {path}: cannot be read: No such file or directory"
    assert remedy.startswith("  try: `tilefarm vta dump`")


def test_help_names_the_actions(vta: Vta, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        vta("--help")
    out = capsys.readouterr().out
    assert "exit codes" in out
    assert "compare cycles and memory" in out
