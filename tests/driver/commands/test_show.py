"""`tilefarm show` from the command line: lists, texts, diffs, a page, and clear refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from kit.built import no_simulator, require
from kit.networks.forms_once import forms_once

from driver import cli

Show = Callable[..., str]


@pytest.fixture(autouse=True)
def _converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driver.network.forms.forms_of", forms_once)


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Show:
    def run(*words: str, code: int = 0) -> str:
        assert cli.main(["show", *words]) == code
        streams = capsys.readouterr()
        return streams.err if code else streams.out

    return run


def needs_library() -> None:
    require(no_simulator)


def test_the_workloads_of_a_network(show: Show) -> None:
    lines = show("zoo:digits").splitlines()
    assert lines[0].split()[:3] == ["#", "workload", "runs"]
    assert lines[1].split()[1].startswith("quantize")
    rows = json.loads(show("zoo:digits", "--list", "--json"))
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    assert sum(row["macs"] for row in rows) == 1_189_504


def test_overview_text_and_diff(show: Show) -> None:
    overview = show("zoo:digits", "--workload", "dense")
    assert "split('out_co', 1)" in overview
    assert "lower_dma  Copies between DRAM and the chip" in overview
    text = show("zoo:digits", "--workload", "dense", "--after", "lower_gemm")
    assert text.startswith("func dense")
    diff = show("zoo:digits", "--workload", "dense", "--after", "lower_gemm", "--diff")
    assert any(line.startswith("+") and "gemm" in line for line in diff.splitlines())
    assert show("zoo:digits", "--workload", "softmax", "--after", "llvm").startswith("define")


def test_a_kernel_of_the_processor_has_no_instructions(show: Show) -> None:
    words = ("zoo:digits", "--workload", "softmax", "--after")
    assert "softmax_1x1" in (why := show(*words, "stream", code=2))
    assert "runs on the processor" in why
    assert "try: one of nest," in show(*words, "nowhere", code=2)


def test_differences_as_json(show: Show) -> None:
    words = ("zoo:digits", "--workload", "5", "--against", "default", "--json")
    assert json.loads(show(*words))["difference"] == []
    assert json.loads(show(*words, "--trace", "predicted"))["difference"]
    after = json.loads(show(*words, "--trace", "predicted", "--after", "lower_alu"))
    assert any(line.startswith("+") for line in after["difference"])


def test_two_schedules_side_by_side(show: Show, tmp_path: Path) -> None:
    words = ("zoo:digits", "--workload", "dense", "--against", "default")
    assert show(*words).strip() == "the schedules are equal"
    shorter = tmp_path / "t.json"
    shorter.write_text('[["set_scope", "dot", "acc"]]')
    assert "- " in show(*words, "--trace", str(shorter))


def test_a_page_and_a_stream(show: Show, tmp_path: Path) -> None:
    needs_library()
    page = tmp_path / "steps.html"
    assert show("zoo:digits", "--workload", "dense", "--html", str(page)).strip() == str(page)
    text = page.read_text()
    Balanced().feed(text)
    assert text.count("<section") == text.count("type=radio")
    assert "<script" not in text
    stream = show("zoo:digits", "--workload", "dense", "--after", "stream").splitlines()
    assert "finish" in stream[-1]
    document = json.loads(show("zoo:digits", "--workload", "dense", "--json"))
    assert document["cycles"]["gemm"] == 5  # four blocks of input and the bias
    assert document["steps"][-1]["name"] == "stream"


class Balanced(HTMLParser):
    """Fails on a page whose elements are not closed in order."""

    EMPTY = frozenset({"meta", "input", "rect", "line"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "a network or --workload FILE.json is needed"),
        (("zoo:digit",), "zoo:digit: no such network"),
        (("net.onnx",), "cannot read net.onnx"),
        (("zoo:digits", "--workload", "conv2d"), "4 workloads fit --workload conv2d"),
        (("zoo:digits", "--workload", "dense", "--after", "x"), "--after x: no such step"),
        (("--workload", "none.json"), "none.json: cannot be read"),
        (("--workload", "w.json", "--list"), "--list: w.json is one workload, not a network"),
        (("zoo:digits", "--workload", "dense", "--best", "/"), "no records of a run"),
    ],
)
def test_refusals(show: Show, words: tuple[str, ...], why: str) -> None:
    assert why in show(*words, code=2)


def test_a_schedule_that_does_not_fit_shows_how_far_it_goes(show: Show, tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    trace.write_text('[["set_scope", "dot", "acc"], ["split", "out_co", 3]]')
    words = ("zoo:digits", "--workload", "dense", "--trace", str(trace))
    error = show(*words, code=2)
    assert "step 2, split('out_co', 3)" in error


OWN_PASS = """
from compile_worker.ir.func import Func

def renamed(func, target):
    return Func("mine", func.params, func.body, func.attrs)

def broken(func, target):
    return Func(func.name, (), func.body, func.attrs)
"""


def test_a_pass_of_the_users_is_a_step(show: Show, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN_PASS)
    words = ["zoo:digits", "--workload", "softmax", "--pass"]
    text = show(*words, f"{file}:renamed@flatten", "--after", "renamed")
    assert text.startswith("func mine {")
    error = show(*words, f"{file}:broken@flatten", "--after", "llvm", code=2)
    assert "breaks a rule of the stage flat" in error


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("own.py:renamed", "not a pass"),
        ("{}:renamed@flaten", "there is no pass 'flaten'"),
        ("{}:nosuch@flatten", "has no function nosuch"),
        ("nosuch.py:renamed@flatten", "there is no file nosuch.py"),
        ("{}bad.py:renamed@flatten", "cannot be loaded: SyntaxError"),
    ],
)
def test_a_pass_that_cannot_be_had(show: Show, tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN_PASS)
    (tmp_path / "own.pybad.py").write_text("def")
    words = ["zoo:digits", "--workload", "softmax", "--pass", text.format(file)]
    assert why in show(*words, code=2)
