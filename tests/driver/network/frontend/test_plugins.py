"""Operators of users: what they become, and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.kernels.scripts import SCRIPTS
from kit.networks.onnx_models import model, saved
from onnx import helper
from tilefarm.artifact import BuildFailure, CompileJob
from tilefarm.errors import ModelError, SettingsError

from compile_worker.compiler import compile_kernel
from compile_worker.space import generate
from driver.cli import main
from driver.network import (
    AS_USUAL,
    Graph,
    forget_plugins,
    import_model,
    load_plugin,
    loaded_plugins,
    partition_network,
    quantize_for,
    run_float,
    run_integer,
)
from driver.network.examples.plugin_operators import plugin_operator_in
from driver.network.graph.ir import Custom
from driver.targets import usable_target

HEAD = """
import numpy as np
from compile_worker.plugins.operator import custom_operator
from compile_worker.te.script_words import Cells, buffer, exp, float32, tanh

HALF = 0.5
"""
SMOOTH = (
    HEAD
    + """
@custom_operator("com.example", "Smooth", shape=lambda x, k, gain: (*x[:2], x[2] - k[0] + 1))
def smooth(x: Cells, k: Cells, out: Cells, *, gain: float) -> None:
    for n in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                out[n, c, i] = 0
                for t in range(k.shape[0]):
                    out[n, c, i] += gain * HALF * x[n, c, i + t] * k[t]

@smooth.reference
def _(x, k, *, gain):
    windows = np.lib.stride_tricks.sliding_window_view(x, len(k), axis=2)
    return gain * 0.5 * (windows * k).sum(-1)
"""
)
ROWS = (
    HEAD
    + """
@custom_operator("com.example", "Rows")
def rows(x: Cells, out: Cells) -> None:
    top = buffer(float32, x.shape[0], x.shape[1])
    whole = buffer(float32, x.shape[0], x.shape[1])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            top[n, c] = float32(-1e30)
            for i in range(x.shape[2]):
                top[n, c] = max(top[n, c], x[n, c, i])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            whole[n, c] = 0
            for i in range(x.shape[2]):
                whole[n, c] += exp(x[n, c, i] - top[n, c])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(x.shape[2]):
                out[n, c, i] = exp(x[n, c, i] - top[n, c]) / whole[n, c]

@rows.reference
def _(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
"""
)


@pytest.fixture(autouse=True)
def _known_to_nobody_else() -> Iterator[None]:
    yield
    forget_plugins()


def plugin(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def smoothing(**attrs: Any) -> onnx.NodeProto:
    return helper.make_node("Smooth", ["x", "k"], ["y"], name="s", domain="com.example", **attrs)


def imported(folder: Path, text: str, node: onnx.NodeProto, x: tuple[int, ...]) -> Graph:
    load_plugin(plugin(folder, text))
    weights = {"k": np.array([0.25, 0.5, 0.25], np.float32)}
    made = model([node], weights if "k" in node.input else {}, x=x)
    return import_model(saved(made, folder))


def test_its_script_is_what_is_computed(tmp_path: Path) -> None:
    graph = imported(tmp_path, SMOOTH, smoothing(gain=3.0), (2, 3, 7))
    x = np.random.default_rng(0).standard_normal((4, 3, 7), np.float32)
    (out,) = run_float(graph, {"x": x}).values()
    wanted = 1.5 * (0.25 * x[..., :-2] + 0.5 * x[..., 1:-1] + 0.25 * x[..., 2:])
    assert out.shape == (4, 3, 5)
    op = graph.nodes[0].op
    assert isinstance(op, Custom)
    assert op.checked.startswith("script and numpy are at most ")
    assert op.checked.endswith(" apart in 30 elements")
    assert np.allclose(out, wanted, atol=1e-5)


def test_samples_that_are_no_whole_batch_are_computed_too(tmp_path: Path) -> None:
    graph = imported(tmp_path, SMOOTH, smoothing(gain=3.0), (2, 3, 7))
    x = np.random.default_rng(0).standard_normal((3, 3, 7), np.float32)
    (three,) = run_float(graph, {"x": x}).values()
    (two,) = run_float(graph, {"x": x[:2]}).values()
    assert len(three) == 3
    assert np.array_equal(three[:2], two)


@pytest.mark.parametrize("target", ["sim", "cpu:x86-64-v3"])
def test_the_integer_network_runs_it_as_a_kernel(tmp_path: Path, target: str) -> None:
    node = helper.make_node("Rows", ["x"], ["y"], name="r", domain="com.example")
    graph = imported(tmp_path, ROWS, node, (1, 2, 5))
    x = np.random.default_rng(0).standard_normal((3, 2, 5), np.float32)
    quantized = quantize_for(usable_target(target), graph, {"x": x}, AS_USUAL)
    network = partition_network(quantized, usable_target(target))
    (step,) = [step for step in network.steps if step.workload.operator == "script"]
    assert step.place == "cpu"
    (floats,) = run_float(graph, {"x": x}).values()
    (integers,) = run_integer(quantized, {"x": x}).values()
    assert np.allclose(floats, integers, atol=0.02)


MIXED = (
    HEAD
    + """
@custom_operator("com.example", "Mixed", shape=lambda x: (x[0], x[0]))
def mixed(x: Cells, out: Cells) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            out[i, j] = 0
            for k in range(x.shape[1]):
                out[i, j] += x[i, k] * x[j, k]

@mixed.reference
def _(x):
    return x @ x.T
"""
)
SHIFT = """
@same.reference
def _(x):
    return np.concatenate([x[:1], x[:-1]])
"""
PLACES = """
@same.reference
def _(x):
    return x + np.arange(len(x), dtype=np.float32)[:, None]
"""


def test_what_mixes_samples_of_a_batch_has_one_run_as_a_sample(tmp_path: Path) -> None:
    node = helper.make_node("Mixed", ["x"], ["y"], name="m", domain="com.example")
    graph = imported(tmp_path, MIXED, node, (6, 9))
    x = np.random.default_rng(0).standard_normal((5, 6, 9), np.float32)
    (out,) = run_float(graph, {"x": x}).values()
    assert out.shape == (5, 6, 6)
    assert np.allclose(out, x @ x.transpose(0, 2, 1), atol=1e-5)


@pytest.mark.parametrize(
    ("body", "reference"),
    [
        ("out[i, j] = x[max(i - 1, 0), j]", SHIFT),
        ("out[i, j] = x[i, j] + float32(i)", PLACES),
    ],
)
def test_so_has_what_depends_on_neighbours_or_places(
    tmp_path: Path, body: str, reference: str
) -> None:
    loops = "    for i in range(x.shape[0]):\n        for j in range(x.shape[1]):\n            "
    declared = '@custom_operator("com.example", "Same")\ndef same(x, out):\n'
    graph = imported(tmp_path, HEAD + declared + loops + body + "\n" + reference, SAME, (6, 9))
    x = np.random.default_rng(0).standard_normal((2, 6, 9), np.float32)
    (out,) = run_float(graph, {"x": x}).values()
    assert out.shape == (2, 6, 9)


def test_a_number_in_words_is_whole_where_it_is_said_so(tmp_path: Path) -> None:
    load_plugin(plugin(tmp_path, SMOOTH))
    for said, kind in (("3", int), ("3.0", float), ("3e2", float)):
        text = plugin_operator_in(f"com.example.Smooth x=1x3x7 k=3 gain={said}")
        ((_, number),) = text.numbers
        assert type(number) is kind


BODY = "    for i in range(x.shape[0]):\n        out[i] = x[i]\n"
FLAT = HEAD + '@custom_operator("com.example", "Same", flat=True)\ndef same(x, out):\n' + BODY
FOREVER = """
@same.reference
def _(x):
    while True:
        try:
            x = x + 1
        except Exception:
            pass
"""
SAME = helper.make_node("Same", ["x"], ["y"], name="s", domain="com.example")


@pytest.mark.parametrize(
    ("text", "node", "why"),
    [
        (FLAT, SAME, "has no reference"),
        (FLAT + "@same.reference\ndef _(x):\n    return x + 1\n", SAME, "script makes"),
        (FLAT + "@same.reference\ndef _(x):\n    return x * np.nan\n", SAME, "its numpy nan"),
        (FLAT + "@same.reference\ndef _(x):\n    return x[0]\n", SAME, "its shape says"),
        (FLAT + "@same.reference\ndef _(x):\n    raise OSError('no')\n", SAME, "OSError: no"),
        (FLAT + "@same.reference\ndef _(x):\n    return x + 1j\n", SAME, "makes complex64, no"),
        (FLAT + "@same.reference\ndef _(x):\n    return ['a']\n", SAME, "makes <U1, no float32"),
        (FLAT + "@same.reference\ndef _(x):\n    exit(3)\n", SAME, "fails: SystemExit: 3"),
        (FLAT + FOREVER, SAME, "numpy fails: not done after 0.1 s"),
        (FLAT.replace("flat=True", "shape=lambda x: (2.5,)"), SAME, "shape fails: TypeError"),
        (FLAT.replace("flat=True", "shape=lambda x: exit(3)"), SAME, "shape fails: SystemExit"),
        (FLAT.replace("flat=True", "shape=lambda x: (1 << 40,)"), SAME, "the plugin's shape says"),
        (SMOOTH, smoothing(), "attribute 'gain' is missing"),
        (SMOOTH, smoothing(gain=float("nan")), "attribute 'gain' is nan, no finite number"),
        (SMOOTH, smoothing(gain=1.0, bend=2.0), "has no attribute bend"),
        (SMOOTH.replace("(*x[:2],", "(9, *x[:2],"), smoothing(gain=1.0), "the plugin's"),
        (SMOOTH.replace("x[2] - k[0] + 1", "x[9]"), smoothing(gain=1.0), "shape fails: IndexError"),
        (SMOOTH.replace("i + t", "i + t + 3"), smoothing(gain=1.0), "the plugin's script: script:"),
        (SMOOTH.replace("i + t", "int32(k[t])"), smoothing(gain=1.0), "try int64"),
        (
            SMOOTH,
            helper.make_node("Smooth", ["x"], ["y"], name="s", domain="com.example"),
            "it has 1 inputs",
        ),
    ],
)
def test_a_plugin_that_does_not_fit_is_one_reason(
    tmp_path: Path, text: str, node: onnx.NodeProto, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.network.frontend.custom.rule.SECONDS", 0.1)
    with pytest.raises(ModelError, match=why.replace("(", r"\(")) as raised:
        imported(tmp_path, text, node, (1, 3, 7))
    assert ": s (" in raised.value.what
    assert raised.value.hint


def test_what_it_prints_is_no_part_of_what_a_command_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = 'print("begins")\n' + SMOOTH.replace(
        "    windows =", '    print("x", sep="")\n    windows ='
    )
    imported(tmp_path, noisy, smoothing(gain=1.0), (1, 3, 7))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "begins\nx\n"


def test_what_a_reference_does_to_its_inputs_stays_with_it(tmp_path: Path) -> None:
    changing = SMOOTH.replace("    windows =", "    k[:] = k[:] * 2\n    windows =")
    changing = changing.replace("gain * 0.5 *", "gain * 0.25 *")
    graph = imported(tmp_path, changing, smoothing(gain=1.0), (1, 1, 7))
    op = graph.nodes[0].op
    assert isinstance(op, Custom)
    ((_, weights),) = op.constants
    assert weights.tolist() == [0.25, 0.5, 0.25]


RELU = '@custom_operator("", "Relu")\ndef f(x, out):\n'
PASS = """
from compile_worker.ir.verify import Stage
from compile_worker.pipeline import Pass

mine = Pass("mine", lambda func, target: func, Stage.FLAT)
"""
TWICE = FLAT + FLAT.removeprefix(HEAD).replace("def same", "def other")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1", "declares no operator"),
        ("", "declares no operator"),
        ("import nothing_like_this", "cannot be loaded: ModuleNotFoundError: .* in line 1"),
        ("x = 1\ndef (", "cannot be loaded: SyntaxError: .* in line 2"),
        ("x = 1\n" + "(" * 9999, "cannot be loaded: "),
        ("x = 1\0", "cannot be loaded: "),
        ("\n\nraise ValueError('two\\nlines')", "ValueError: two lines in line 3"),
        ("import sys\nsys.exit(0)", "cannot be loaded: SystemExit: 0 in line 2"),
        (
            "while True:\n    try:\n        x = 1\n    except Exception:\n        pass",
            "not done after",
        ),
        ("#" * (1 << 21), "has 2,097,152 bytes, at most 1,048,576 are taken"),
        (HEAD + RELU + BODY, "defined elsewhere"),
        (HEAD + RELU.replace('""', '"ai.onnx.ml"') + BODY, "defined elsewhere"),
        (HEAD + '@custom_operator("a.b", "C")\ndef f(*x):\n    pass\n', "named parameters"),
        (HEAD + RELU.replace('""', '"a b"') + BODY, "'a b' is no name of an operator"),
        (HEAD + RELU.replace('"", "Relu"', '"a", 3') + BODY, "3 is no name"),
        (HEAD + RELU.replace('"", "Relu"', '"a", ""') + BODY, "'' is no name"),
        (SMOOTH.replace("gain: float", "gain: float = 'two'"), "gain is no number"),
        (SMOOTH.replace("gain: float", "gain: float = 10**400"), "gain is no finite number"),
        (f"LOW = float('-inf')\n{FLAT}".replace("= x[i]", "= LOW"), "LOW is no finite number"),
        (TWICE, "declares com.example.Same twice"),
        (PASS, "declares a Pass, and its place is not said"),
    ],
)
def test_a_file_that_is_no_plugin_is_one_line(
    tmp_path: Path, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compile_worker.plugins.plugin.LOAD_SECONDS", 0.3)
    with pytest.raises(SettingsError, match=why) as raised:
        load_plugin(plugin(tmp_path, text))
    assert "\n" not in raised.value.what
    assert raised.value.hint
    assert not loaded_plugins()


def test_a_class_that_looks_for_its_module_is_made(tmp_path: Path) -> None:
    """As a dataclass does that has its types as text."""
    data = "from dataclasses import dataclass\n\n@dataclass\nclass A:\n    x: int = 3\n\n"
    load_plugin(plugin(tmp_path, f"from __future__ import annotations\n{data}{FLAT}"))
    assert [len(each.operators) for each in loaded_plugins()] == [1]


def test_a_module_beside_a_plugin_is_said_to_be_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("x = 1")
    with pytest.raises(SettingsError, match="No module named 'beside'") as raised:
        load_plugin(plugin(tmp_path, f"import beside\n{FLAT}"))
    assert "put it into the file" in raised.value.hint


def test_a_file_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="cannot be loaded"):
        load_plugin(str(tmp_path / "mine.py"))


def test_two_plugins_do_not_claim_one_operator(tmp_path: Path) -> None:
    load_plugin(plugin(tmp_path, FLAT))
    load_plugin(plugin(tmp_path, FLAT))
    both = FLAT + FLAT.removeprefix(HEAD).replace("Same", "Other").replace("def same", "def other")
    with pytest.raises(SettingsError, match=r"com\.example\.Same, which another plugin has"):
        load_plugin(plugin(tmp_path, both))
    assert [len(each.operators) for each in loaded_plugins()] == [1], "the other one is not half in"


def test_what_there_is_not_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "plain").mkdir()
    for named, why in (
        ("absent", "no package brings absent"),
        ("absent.py", "there is no file absent.py"),
        ("folder.py", "folder.py is a folder"),
        ("plain", "plain is a folder"),
    ):
        assert main(["explain", "net.onnx", "--plugin", named]) == 2
        told = capsys.readouterr().err
        assert why in told
        assert len(told.splitlines()) == 2


def test_a_package_brings_operators_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brought.py").write_text(FLAT)
    info = tmp_path / "brought-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1\n")
    points = "[tilefarm.plugins]\nmine = brought\nobject = brought:x\ngone = brought_gone\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_plugin("mine") == tmp_path / "brought.py"
    assert [each.label for each in loaded_plugins()[0].operators] == ["com.example.Same"]
    with pytest.raises(SettingsError, match="object is no module"):
        load_plugin("object")
    with pytest.raises(SettingsError, match="there is no module brought_gone"):
        load_plugin("gone")
    with pytest.raises(SettingsError, match=r"no package brings other.*\n.*gone, mine, object"):
        load_plugin("other")


RULE = """
from tilefarm.trace import Step
from compile_worker.machines.cpu.space.script_context import ScriptRule

def always(context):
    return ""

def declare(draft, context):
    draft.tunable("mine", (1, 2))

def steps(context, point):
    yield Step("unroll", ("nothing",))

mine = ScriptRule(
    name="Mine", when="always", effect="none", unmet=always, declare=declare, steps=steps
)
"""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('return ""', "return 1 / 0"), "the rule Mine fails: ZeroDivisionError"),
        (('"mine", (1, 2)', '"lanes", (1, 2)'), "ValueError: there already is a variable lanes"),
        (('yield Step("unroll", ("nothing",))', "yield 1"), "its steps have a int, no Step"),
        (('"mine", (1, 2)', '"mine", ()'), "mine has no values to choose from"),
        (('"mine", (1, 2)', '"mine", (1, 1.5)'), "Mine fails: TypeError"),
        (('"mine", (1, 2)', '"mine", ("a", "b")'), "Mine fails: TypeError"),
        (('"mine", (1, 2)', '"mine", (1, 2**70)'), "mine has values beyond 2147483648"),
        (('"mine", (1, 2)', '"mine", range(10**12)'), "mine has more than 4096 values"),
        (('"mine", (1, 2)', '"mine", (1, 2), ("a",)'), "mine has 1 labels for 2 values"),
        (('"mine", (1, 2)', '"mi ne", (1, 2)'), "'mi ne' is no name of a variable"),
        (('"mine", (1, 2)', "3, (1, 2)"), "3 is no name of a variable"),
        (('("nothing",)', "(object(),)"), "Mine fails: TypeError: Object of type object is not"),
        (('return ""', "raise SystemExit(3)"), "the rule Mine fails: SystemExit: 3"),
        (('return ""', "while True: pass"), "the rule Mine fails: OverdueError: not done after"),
    ],
)
def test_a_rule_that_fails_is_one_line(
    change: tuple[str, str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compile_worker.plugins.rules.SECONDS", 0.1)
    load_plugin(plugin(tmp_path, RULE.replace(*change)))

    def default_trace() -> None:
        made = generate(SCRIPTS["gemm"], usable_target("cpu:x86-64-v3"))
        made.trace(made.default)

    with pytest.raises(SettingsError, match=why) as raised:
        default_trace()
    assert "\n" not in raised.value.what


def test_a_rule_whose_steps_do_not_apply_is_a_candidate_that_fails(tmp_path: Path) -> None:
    load_plugin(plugin(tmp_path, RULE))
    target = usable_target("cpu:x86-64-v3")
    made = generate(SCRIPTS["gemm"], target)
    job = CompileJob(workload=SCRIPTS["gemm"], trace=made.trace(made.default), target=target)
    built = compile_kernel(job)
    assert isinstance(built, BuildFailure)
    assert "unroll('nothing'): there is no such loop" in built.why


def test_two_rules_have_two_names(tmp_path: Path) -> None:
    load_plugin(plugin(tmp_path, RULE))
    with pytest.raises(SettingsError, match="there already is a rule Mine"):
        load_plugin(plugin(tmp_path, RULE + "# another file"))
    with pytest.raises(SettingsError, match="there already is a rule Tensorize"):
        load_plugin(plugin(tmp_path, RULE.replace('"Mine"', '"Tensorize"')))
    assert len(loaded_plugins()) == 1
