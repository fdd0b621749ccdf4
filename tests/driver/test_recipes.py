"""What READMEs show how to add works as it is written there."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest
from kit.kernels.scripts import SATURATED_SUM, SCRIPTS, script_of
from kit.networks.onnx_models import model, saved
from kit.recipes import RECIPES, ROOT, Recipe
from onnx import helper
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.digest import Digest
from tilefarm.machine import HLS_MAX_SHIFT, Board, Host

from compile_worker.compiler import compile_kernel
from compile_worker.space import generate
from driver.benchmarks.figures import Figure
from driver.benchmarks.script_sources import GEMM
from driver.cli import main
from driver.network import forget_plugins, load_plugin
from driver.targets import usable_target

DRIVER: Final = Path(__file__).resolve().parents[2] / "driver"


ADDED: Final = f"""
import numpy as np

from compile_worker.plugins.operator import custom_operator


@custom_operator("com.example", "Added", flat=True){SATURATED_SUM}

@added.reference
def _(x, y):
    a, b = (np.clip(np.rint(each * np.float32(50)), -127, 127) for each in (x, y))
    return np.clip(a + b, -128, 127)
"""


def example(readme: Path, language: str, word: str) -> str:
    """The one block of a README in this language that has this word in it."""
    blocks = re.findall(rf"```{language}\n(.*?)```", readme.read_text(), re.DOTALL)
    (found,) = [str(block) for block in blocks if word in block]
    return found


MOST_LINES: Final = 40


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_recipe_is_a_page_whose_code_runs(recipe: Recipe, tmp_path: Path) -> None:
    lines = len(recipe.text.splitlines())
    assert lines <= MOST_LINES, (
        f"{recipe.name} takes {lines} lines: a section each, or a smaller API"
    )
    language, code = recipe.code
    if language == "json":
        (tmp_path / "mine.json").write_text(code)
        assert usable_target(str(tmp_path / "mine.json"))
    else:
        assert recipe.run(tmp_path)


def test_whatever_can_be_added_has_a_recipe() -> None:
    assert RECIPES.keys() >= {
        *(f"compile_worker: {each}" for each in ("operator", "primitive", "pass", "machine")),
        *(
            f"driver/network: {each}"
            for each in ("operator", "generation rule", "pass", "intrinsic", "intrinsic of loops")
        ),
        *("driver: board", "driver/benchmarks: benchmark", "tuner: proposer"),
    }
    contributing = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
    for name in RECIPES:
        folder, _, what = name.partition(": ")
        assert f"({'../' + folder}/README.md" in contributing, folder
        assert re.search(rf"\ban? .*\b{what}\b", contributing), what


def test_a_board(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(example(DRIVER / "README.md", "json", "mine"))
    board = usable_target(str(file))
    assert board.board == Board(model="mine", design="hls", runtime="original", clock_mhz=200)
    assert board.limits.max_shift == HLS_MAX_SHIFT
    document = json.loads(file.read_text())
    del document["host"]
    file.write_text(json.dumps(document))
    assert usable_target(str(file)) == replace(board, host=Host())


def test_a_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(example(DRIVER / "benchmarks" / "README.md", "python", "tilefarm bench"), names)
    module = SimpleNamespace(**names)
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    for as_json in (False, True):
        args = parser.parse_args(["--layers", "C2,C11"], argparse.Namespace(json=as_json))
        assert module.run(args) == 0
    *table, document = capsys.readouterr().out.splitlines()
    rows = json.loads(document)
    assert [row["name"] for row in rows] == ["C2", "C11"]
    assert rows[0].keys() == Figure(name="", value=0, unit="").row().keys()
    assert any(line.startswith("C11") for line in table)


def test_a_custom_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plugin = tmp_path / "mine.py"
    plugin.write_text(example(DRIVER / "network" / "README.md", "python", "ScaledTanh"))
    scaled = helper.make_node("ScaledTanh", ["x"], ["y"], domain="com.example", scale=2.0)
    saved(model([scaled], x=(1, 4, 2, 2)), tmp_path, "net.onnx")
    np.savez("data.npz", x=np.eye(4, dtype=np.float32).reshape(1, 4, 2, 2))
    try:
        words = ["explain", "net.onnx", "--calibrate", "data.npz", "--plugin", "mine.py"]
        assert main(words) == 0
    finally:
        forget_plugins()
    assert main(words[:-2]) == 2


def test_a_pass_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plugin = tmp_path / "passes.py"
    plugin.write_text(example(DRIVER / "network" / "README.md", "python", "custom_pass"))
    words = ["show", "op:gemm m=16 n=16 k=16", "--target", "cpu", "--workload", "dequantize"]
    try:
        assert main([*words, "--plugin", "passes.py"]) == 0
        lines = capsys.readouterr().out.splitlines()
        digest = Digest.of(plugin.read_bytes())
        assert any(f"lower_with('write_out_short_loops', '{digest}')" in line for line in lines)
        (at,) = [n for n, line in enumerate(lines) if line.split()[:1] == ["flatten"]]
        assert lines[at + 1].split()[0] == "write_out_short_loops"
    finally:
        forget_plugins()
    assert main(words) == 0
    assert "write_out_short_loops" not in capsys.readouterr().out


def test_an_intrinsic_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = example(DRIVER / "network" / "README.md", "python", "saturated_sum")
    Path("mine.py").write_text(source + ADDED)
    words = ["show", "op:com.example.Added x=8x100 y=8x100", "--plugin", "mine.py"]
    try:
        assert main([*words, "--target", "cpu:x86-64-v3", "--after", "llvm"]) == 0
        assert re.search(r"@llvm\.sadd\.sat\.v\d+i8\(", capsys.readouterr().out)
    finally:
        forget_plugins()


def test_an_intrinsic_of_loops_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(RECIPES["driver/network: intrinsic of loops"].code[1])
    Path("point.json").write_text('{"tensorize_pairs": 1, "block_i": 8, "tile_i": 24}')
    words = ["show", "op:com.example.Power x=24x32", "--plugin", "mine.py"]
    words += ["--target", "cpu:x86-64-v3"]
    try:
        assert main(words) == 0
        assert "+ Tensorize-pairs: a stage computes what pairs does" in capsys.readouterr().out
        assert main([*words, "--point", "point.json", "--after", "llvm"]) == 0
        said = capsys.readouterr().out
        assert len(re.findall(r"call <8 x i32> @kernel\.body\.pairs_\w+\(", said)) == 1
        assert main([*words[:-1], "cpu:neoverse-n1"]) == 0
        assert "- Tensorize-pairs: it needs avx2" in capsys.readouterr().out
    finally:
        forget_plugins()


def test_a_rule_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plugin = tmp_path / "rule.py"
    plugin.write_text(example(DRIVER / "network" / "README.md", "python", "ScriptRule"))
    made = SCRIPTS["gemm"], usable_target("cpu:x86-64-v3")
    before = generate(*made)
    try:
        load_plugin(str(plugin))
        assert generate(*made).space == before.space, "21 terms are no fours"
        longer = script_of(GEMM, (10, 48), a=(10, 24), b=(24, 48)), made[1]
        space = generate(*longer)
        assert space.rules[-1].rule == "Write-Out-Terms"
        assert space.rules[-1].fired
        job = CompileJob(workload=longer[0], trace=space.trace({"terms": 4}), target=made[1])
        assert str(job.trace).endswith("split('out_k', 4)\nunroll('out_k_1')")
        assert isinstance(compile_kernel(job), Artifact)
    finally:
        forget_plugins()
    assert "terms" not in {each.name for each in generate(*longer).space.tunables}
