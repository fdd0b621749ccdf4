"""Operators in words on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.objects.hosts import runs_here
from kit.recipes import RECIPES
from tilefarm.digest import Digest
from tilefarm.measurement import Status

from driver.cli import main
from driver.network import forget_plugins
from tuner.trial_store import TrialStore


def test_a_file_of_operators_is_tuned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("layers.txt").write_text("gemm m=8 n=16 k=16 # a layer\nadd c=16 h=4 w=4\n")
    words = ["tune-op", "layers.txt", "--trials", "6", "--devices", "1", "--no-ray"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "0 differ from the reference" in said
    assert "scaled_add" in said
    assert (tmp_path / "tilefarm-out" / "2_operators" / "program").is_dir()


def test_a_file_is_one_whatever_its_name_looks_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("batch=1.txt", "gemm"):
        Path(name).write_bytes(b"\xef\xbb\xbfop:gemm m=8\tn=0 k=16\r\n")
        assert main(["tune-op", name]) == 2
        assert "n=0 is no whole number from 1" in capsys.readouterr().err


def test_the_word_alone_says_what_else_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune-op", "softmax"]) == 2
    assert "softmax: lacks n\n  try: softmax takes n=" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["absent.txt", ".", "", "gemm m=2", "nonsense=1", "a=b" * 2000])
def test_what_cannot_be_tuned_is_refused(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["tune-op", words]) == 2
    assert capsys.readouterr().err.startswith("tilefarm tune-op: ")
    assert not list(tmp_path.iterdir())


def test_bytes_are_no_operators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\xff\x00\x80")
    assert main(["tune-op", str(path)]) == 2
    assert "not UTF-8" in capsys.readouterr().err


PLUGIN = """
from compile_worker.plugins.operator import custom_operator

@custom_operator("com.example", "Product", shape=lambda a, b, by: (a[0], b[1]))
def product(a, b, out, *, by: float = 2.0):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j] * by

@product.reference
def _(a, b, *, by=2.0):
    return a @ b * by
"""


HERE = ("--target", "cpu", "--no-ray", "--workers", "1")
"""Few trials are soon compiled, and a second worker would be longer in starting."""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(PLUGIN)
    yield "mine.py"
    forget_plugins()


@pytest.mark.slow
def test_an_operator_of_a_plugin_is_searched(
    plugin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tune-op", "com.example.Product a=6x8 b=8x16 by=3", "--plugin", plugin]
    assert main([*words, *HERE, "--trials", "3"]) == 0
    said = capsys.readouterr().out
    assert "0 differ from the reference" in said
    assert "3 trials in" in said


PASSES = """
from compile_worker.ir.expr import Const
from compile_worker.ir.func import Func
from compile_worker.ir.visit import rewrite
from compile_worker.plugins.custom_pass import custom_pass

BY = 2.0

@custom_pass(after="flatten")
def times(func, target):
    def rule(node):
        if isinstance(node, Const) and node.value == 3.0:
            return Const(node.value * BY / 2.0, node.dtype)
        return None
    return Func(func.name, func.params, rewrite(func.body, rule), func.attrs)
"""


@pytest.mark.slow
def test_a_pass_of_a_plugin_is_searched_with_and_its_records_are_its_own(
    plugin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("passes.py").write_text(PASSES)
    words = ["tune-op", "com.example.Product a=6x8 b=8x16 by=3", "--plugin", plugin]
    words += [*HERE, "--trials", "2", "--records", "all.sqlite"]
    assert main([*words, "--plugin", "passes.py", "--out", "with"]) == 0
    said = capsys.readouterr().out
    assert "every kernel lowered with times" in said
    assert "0 differ from the reference" in said
    digest = Digest.of(PASSES.encode()).hex
    assert f'["lower_with","times","{digest}"]' in Path("with/schedules.json").read_text()
    manifest = json.loads(Path("with/program/manifest.json").read_text())
    assert manifest["lower_with"] == [["times", digest]]
    assert manifest["plugins"] == [["passes.py", digest]]
    check = ["check", "op:com.example.Product a=6x8 b=8x16 by=3", "--plugin", plugin]
    check += ["--target", "cpu", "--out", "with"]
    assert main(check) == 0, "what the run found is looked up by the clock of a processor"
    assert "1 of 1 step is bit for bit right" in capsys.readouterr().out

    forget_plugins()
    assert main(check) == 2
    assert "lowered with times of passes.py" in capsys.readouterr().err
    assert main([*words, "--out", "without"]) == 0
    assert "records: 0 of 1 workload known, 2 schedules" in capsys.readouterr().out
    given = ["tune", "op:com.example.Product a=6x8 b=8x16 by=3", "--plugin", plugin]
    given += [*HERE, "--schedules", "with/schedules.json"]
    assert main(given) == 2
    assert "needs the pass times of the plugin" in capsys.readouterr().err

    forget_plugins()
    Path("passes.py").write_text(PASSES.replace("BY = 2.0", "BY = 3.0"))
    assert main([*words, "--plugin", "passes.py", "--out", "wrong"]) != 0
    out, err = capsys.readouterr()
    assert "records: 0 of 1 workload known, 4 schedules" in out
    assert "first: wrong_result: " in err
    assert "try: leave out --plugin, whose passes lower every kernel" in err

    forget_plugins()
    Path("passes.py").write_text(f"# Another version.\n{PASSES}")
    assert main([*given, "--plugin", "passes.py", "--trials", "0", "--out", "later"]) == 0
    said = capsys.readouterr().out
    assert "with/schedules.json: 1 schedule lowered with the passes that are loaded now" in said
    assert "0 differ from the reference" in said
    digest = Digest.of(Path("passes.py").read_bytes()).hex
    assert f'["lower_with","times","{digest}"]' in Path("later/schedules.json").read_text()


@pytest.mark.slow
def test_an_intrinsic_of_loops_is_searched_with_and_one_that_lies_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not runs_here("avx2"):
        pytest.skip("this processor has no avx2")
    monkeypatch.chdir(tmp_path)
    text = RECIPES["driver/network: intrinsic of loops"].code[1]
    words = ["tune-op", "com.example.Power x=24x32", *HERE, "--trials", "16"]
    used = r"pairs: of (\d+) schedules? with it (\d+) end as wrong_result; 0 of \d+ without it fail"
    try:
        Path("mine.py").write_text(text)
        assert main([*words, "--plugin", "mine.py", "--out", "true"]) == 0
        said = capsys.readouterr().out
        assert "pairs can do sums of 1 of 1 workload" in said
        assert "0 differ from the reference" in said
        assert not re.search(used, said)
        with TrialStore(Path("true/records.sqlite"), read_only=True) as store:
            trials = store.trials()
        assert {trial.status for trial in trials} == {Status.OK}
        assert any(dict(trial.point)["tensorize_pairs"] for trial in trials)
        forget_plugins()
        Path("lie.py").write_text(text.replace("= add", "= sub"))
        assert main([*words, "--plugin", "lie.py", "--out", "lie"]) == 0
        said = capsys.readouterr().out
        found = re.search(used, said)
        assert found is not None
        assert found[1] == found[2]
        assert "0 differ from the reference" in said
    finally:
        forget_plugins()


def test_numbers_that_differ_in_a_late_digit_are_two_operators(
    plugin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "com.example.Product a=6x8 b=8x16 by="
    words = f"op:{said}1.00000001; {said}1.00000002; {said}1.00000002"
    assert main(["explain", words, "--plugin", plugin, "--target", "cpu"]) == 0
    told = capsys.readouterr().out
    assert "2 layers, and 0 without work" in told


def test_show_says_which_rules_made_its_space(
    plugin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["show", "op:com.example.Product a=6x8 b=8x16", "--plugin", plugin, "--target", "cpu"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "+ Add-Cache-Stage: the last stage reduces" in said
    assert "- Tensorize: no stage sums products" in said
    assert main([*words, "--json"]) == 0
    space = json.loads(capsys.readouterr().out)["space"]
    assert space["default"].keys() == space["variables"].keys()
    assert {each["rule"] for each in space["rules"] if each["fired"]} >= {"Add-Cache-Stage"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("com.example.Product a=6x8", "lacks b\n  try: com.example.Product takes a=AxB b=AxB by="),
        ("com.example.Product a=6x8 b=8x16 c=1", "says what it does not take"),
        ("com.example.Product a=6x8 b=8x16 b=8x16", "says what it does not take, or twice"),
        ("com.example.Product a=6x8 b=8y16", "'8y16' is no shape"),
        ("com.example.Product a=6x8 b=8x16 by=much", "could not convert"),
        ("com.example.Product a=6x8 b=8x16 by=nan", "'nan' is no finite number"),
        ("com.example.Product a=6x8 b=8x16 by=1e999", "'1e999' is no finite number"),
        ("com.example.Product a=6x8 b=8", "shape fails: IndexError"),
        ("com.example.Product a=6x8 b=9x16", "numpy fails: ValueError"),
        ("com.example.Other a=6x8", "no operator com.example.Other is known"),
        ("com.example.Product a=60000x8000 b=8000x1", "a tensor has 480,000,000 elements"),
    ],
)
def test_what_is_no_operator_of_a_plugin_is_refused(
    words: str, why: str, plugin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune-op", words, "--plugin", plugin, "--target", "cpu"]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert len(said.splitlines()) == 2
