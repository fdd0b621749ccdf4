"""NaN and infinities in float32 layers are where ONNX's reference has them, however they arise.

Each operator runs as kernels in the interpreter, as machine code, and as a whole network with
`--float` on this processor; all give the bits of the numpy reference, where NaN is NaN.

Where ONNX leaves it open:

* LogSoftmax is x - max - log(sum), which has no least value; the reference evaluator takes the
  logarithm of a softmax, and has minus infinity for what is beyond -104.
* A maximum under a window that has NaN is NaN, as one along axes is. The evaluator's MaxPool gives
  NaN where it is the first element of a window, and leaves it out elsewhere.
* Comparisons, ArgMax and Where are written as arithmetic, which `frontend.operators` says more of:
  Where is NaN, too, where the operand that is not taken is infinite or NaN.
* An average with NaN is NaN; the evaluator's AveragePool leaves NaN out.
* A sum that is beyond float32 on its way is infinite from there on, in our order of its terms.
* exp makes no denormals, and +0 and -0 are one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from kit.kernels.kernel_answers import answer
from kit.networks.onnx_models import model, node, saved
from kit.networks.simulated import Simulators
from kit.objects.hosts import X86, runs_here
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from tilefarm.target import load_target
from tilefarm.workload import Workload

from compile_worker.ir.interpret import interpret
from compile_worker.te import nest_of
from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import FloatArray
from driver.network.integer.cpu_kernels import CPU_KERNELS
from driver.network.integer.qir import QReshape, QuantGraph, Real
from driver.network.integer.real_calls import real_calls_of
from driver.network.integer.real_run import real_workload, run_real
from driver.network.integer.reference import run_integer
from driver.network.quantize.float_form import float_form
from driver.network.quantize.float_network import float_network
from driver.network.quantize.options import Quantization

CPU: Final = load_target("cpu")
SHAPE: Final = (1, 4, 6, 5)
SPECIAL: Final = (np.nan, np.inf, -np.inf, 1e-45, -1e-40, -0.0, 0.0, 3e38, -3e38)
"""What floats can be beyond usual numbers: NaN, infinities, denormals, zeros, the largest."""

Weights = Mapping[str, Any]
Case = tuple[Sequence[onnx.NodeProto], Weights]


def _one(operator: str, *inputs: str, weights: Weights | None = None, **attrs: Any) -> Case:
    return [node(operator, ["x", *inputs], "y", **attrs)], weights or {}


def _f32(*values: float) -> FloatArray:
    return np.array(values, np.float32)


def _half_of_two(operator: str, **attrs: Any) -> Case:
    """Of the first and the last half of the channels, so that all pairs of special values meet."""
    halves = {"at": np.array([2, 2], np.int64)}
    return [
        node("Split", ["x", "at"], "a", "b", axis=1),
        node(operator, ["a", "b"], "y", **attrs),
    ], halves


_RNG: Final = np.random.default_rng(3)
_UNARY: Final = (
    *("Abs", "Celu", "Ceil", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "LeakyRelu"),
    *("Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus"),
    *("Softsign", "Sqrt", "Tanh", "ThresholdedRelu", "Shrink", "IsNaN"),
)
_REDUCTIONS: Final = (
    *("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"),
)
_AXIS: Final = {"axes": np.array([3], np.int64)}
_IMAGE: Final = {"axes": np.array([2, 3], np.int64)}

CASES: Final[Mapping[str, Case]] = {
    **{each: _one(each) for each in _UNARY if each != "IsNaN"},
    **{f"Reduce{each}": _one(f"Reduce{each}", "axes", weights=_AXIS) for each in _REDUCTIONS},
    **{f"{each} of images": _one(each, "axes", weights=_IMAGE) for each in ("ReduceMax",)},
    **{each: _half_of_two(each) for each in ("Add", "Sub", "Mul", "Div", "Max", "Min")},
    "Clip": _one("Clip", "lo", "hi", weights={"lo": np.float32(-1), "hi": np.float32(6)}),
    "Clip from below": _one("Clip", "lo", weights={"lo": np.float32(-1)}),
    "Gelu": _one("Gelu"),
    "Max with a number": _one("Max", "c", weights={"c": np.float32(0.5)}),
    "Min with a number": _one("Min", "c", weights={"c": np.float32(0.5)}),
    "PRelu": _one("PRelu", "s", weights={"s": _f32(0.1, 0.2, 0.3, 0.0).reshape(4, 1, 1)}),
    "Pow to a root": _one("Pow", "e", weights={"e": np.float32(0.5)}),
    "Pow to one over a root": _one("Pow", "e", weights={"e": np.float32(-0.5)}),
    "Pow to a cube": _one("Pow", "e", weights={"e": np.float32(3)}),
    "Softmax": _one("Softmax", axis=-1),
    "Softmax over channels": _one("Softmax", axis=1),
    "LogSoftmax": _one("LogSoftmax", axis=-1),
    "LayerNormalization": _one("LayerNormalization", "s", weights={"s": np.ones(5, np.float32)}),
    "GlobalMaxPool": _one("GlobalMaxPool"),
    "AveragePool": _one("AveragePool", kernel_shape=[2, 2]),
    "Concat": _half_of_two("Concat", axis=3),
    "MatMul": _one("MatMul", "w", weights={"w": _RNG.random((5, 3), np.float32) + 1}),
    "Conv": _one("Conv", "w", weights={"w": _RNG.random((3, 4, 2, 2), np.float32) + 1}),
}


_SUMS: Final = ("AveragePool", "Conv", "MatMul", "ReduceL1", "ReduceMean", "ReduceSum")


def _data(name: str, rate: float, seed: int = 0) -> FloatArray:
    """A sample for a case with special values among usual ones, of sums none of the largest."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 3, SHAPE).astype(np.float32)
    special = SPECIAL[:-2] if name in _SUMS else SPECIAL
    return np.where(rng.random(SHAPE) < rate, rng.choice(special, SHAPE), x).astype(np.float32)


def _built(case: Case, folder: Path) -> tuple[onnx.ModelProto, QuantGraph]:
    made = model(*case, x=SHAPE, opset=20)
    return made, float_network(import_model(saved(made, folder)), CPU)


def _onnx(made: onnx.ModelProto, x: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
    return np.asarray(wanted, np.float32)


def _assert_alike(found: FloatArray, wanted: FloatArray) -> None:
    """NaN and infinities at the same places, and numbers near; those near the ends may overflow."""
    is_far = np.abs(wanted) > 1e38
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found[~is_far]), np.isinf(wanted[~is_far]))
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)


def _same_bits(found: FloatArray, wanted: FloatArray) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    numbers = ~np.isnan(wanted)
    assert found[numbers].tobytes() == wanted[numbers].tobytes()


Kernel = tuple[Workload, dict[str, NDArray[Any]], FloatArray]


def _kernels(graph: QuantGraph, x: FloatArray) -> Iterator[Kernel]:
    """The kernel calls of a network with their operands and what numpy gives for them."""
    values: dict[str, FloatArray] = {"x": x}
    for each in graph.nodes:
        if isinstance(each.op, QReshape):
            values[each.output] = values[each.inputs[0]].reshape(1, *each.op.shape)
            continue
        assert isinstance(each.op, Real)
        operands = [values[name] for name in each.inputs]
        made: list[NDArray[Any]] = list(operands)
        for call in real_calls_of(each.op.op, [x.shape for x in operands]):
            work = real_workload(call)
            arrays = {n: made[o.source].reshape(o.shape) for n, o in call.operands.items()}
            arrays |= {n: np.ascontiguousarray(c) for n, c in call.constants.items()}
            made.append(CPU_KERNELS[call.operator](work, arrays))
            yield work, arrays, made[-1]
        values[each.output] = run_real(each.op.op, operands)


@pytest.mark.parametrize("name", CASES)
def test_networks_in_float_have_nan_where_onnx_has(
    name: str, simulators: Simulators, tmp_path: Path
) -> None:
    made, graph = _built(CASES[name], tmp_path)
    for seed, rate in enumerate((0.02, 0.3)):
        x = _data(name, rate, seed)
        simulators.assert_same(graph, CPU, {"x": x})
        found, wanted = _found(graph, x), _wanted(name, made, x)
        _assert_alike(found.reshape(wanted.shape), wanted)


def _found(graph: QuantGraph, x: FloatArray) -> FloatArray:
    found: FloatArray
    (found,) = run_integer(graph, {"x": x}).values()
    return found


def _wanted(name: str, made: onnx.ModelProto, x: FloatArray) -> FloatArray:
    """What ONNX's reference gives, but for what the first lines of this file tell."""
    if name == "LogSoftmax":
        return _log_softmax(x)
    if name == "AveragePool":
        with np.errstate(all="ignore"):
            rows = x[:, :, 1:] + x[:, :, :-1]
            return np.asarray((rows[..., 1:] + rows[..., :-1]) / np.float32(4))
    return _onnx(made, x)


def _log_softmax(x: FloatArray) -> FloatArray:
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        below = wide - wide.max(axis=-1, keepdims=True)
        found = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return np.asarray(found, np.float32)


@pytest.mark.parametrize("name", CASES)
def test_the_float_network_itself_has_nan_where_onnx_has(name: str, tmp_path: Path) -> None:
    made, x = model(*CASES[name], x=SHAPE, opset=20), _data(name, 0.1)
    graph = float_form(import_model(saved(made, tmp_path)), None, Quantization(floats=True))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (found,) = run_float(graph, {"x": x}).values()
    wanted = np.isnan(_wanted(name, made, x))
    np.testing.assert_array_equal(np.isnan(found).reshape(wanted.shape), wanted)


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_and_machine_code_give_numpy_s_bits(name: str, tmp_path: Path) -> None:
    _, graph = _built(CASES[name], tmp_path)
    hosts = [host for host in ("sse", "avx2", "avx512") if runs_here(host)]
    for number, (work, arrays, wanted) in enumerate(_kernels(graph, _data(name, 0.1))):
        begun = {spec.name: np.zeros(spec.shape, spec.dtype.value) for spec in work.outputs}
        with np.errstate(all="ignore"):
            _same_bits(interpret(nest_of(work, CPU), arrays | begun)["out"], wanted)
        for host in hosts:
            folder = tmp_path / f"{number}{host}"
            folder.mkdir()
            _same_bits(answer(work, X86[host][0], arrays, folder), wanted)


_INSIDE: Final[Mapping[str, Case]] = {
    "the logarithm of what is negative": (
        [
            node("Log", ["x"], "l"),
            node("Relu", ["l"], "r"),
            node("Softmax", ["r"], "y", axis=-1),
        ],
        {},
    ),
    "infinity minus infinity": (
        [
            node("Exp", ["x"], "e"),
            node("Add", ["e", "one"], "f"),
            node("Sub", ["e", "f"], "d"),
            node("Clip", ["d", "lo", "hi"], "y"),
        ],
        {"one": np.float32(1), "lo": np.float32(-5), "hi": np.float32(5)},
    ),
    "zero over zero": (
        [
            node("Relu", ["x"], "r"),
            node("Div", ["r", "r"], "q"),
            node("Tanh", ["q"], "t"),
            node("ReduceMax", ["t", "axes"], "y"),
        ],
        {"axes": np.array([3], np.int64)},
    ),
}


@pytest.mark.parametrize("name", _INSIDE)
def test_nan_that_arises_inside_reaches_the_answer(
    name: str, simulators: Simulators, tmp_path: Path
) -> None:
    made, graph = _built(_INSIDE[name], tmp_path)
    x = np.random.default_rng(1).normal(0, 60, SHAPE).astype(np.float32)
    simulators.assert_same(graph, CPU, {"x": x})
    found, wanted = _found(graph, x), _onnx(made, x)
    assert np.isnan(wanted).any()
    _assert_alike(found.reshape(wanted.shape), wanted)


def test_log_softmax_has_no_least_value(tmp_path: Path) -> None:
    _, graph = _built(CASES["LogSoftmax"], tmp_path)
    x = np.zeros(SHAPE, np.float32)
    x[..., 0] = 1000
    found = _found(graph, x)
    assert (found[..., 0] == 0).all()
    assert (found[..., 1:] == -1000).all()


@pytest.mark.parametrize(
    ("kernel", "pads"), [([2, 2], [0, 0, 0, 0]), ([3, 3], [1, 1, 1, 1])], ids=str
)
def test_a_maximum_under_a_window_with_nan_is_nan(
    kernel: list[int], pads: list[int], simulators: Simulators, tmp_path: Path
) -> None:
    made = _one("MaxPool", kernel_shape=kernel, pads=pads)
    _, graph = _built(made, tmp_path)
    x = np.full(SHAPE, -np.inf, np.float32)
    assert (_found(graph, x) == -np.inf).all(), "padding is below any number"
    x[0, 0, 2, 2] = np.nan
    simulators.assert_same(graph, CPU, {"x": x})
    found = _found(graph, x)
    assert np.isnan(found[0, 0]).sum() == kernel[0] * kernel[1]
    assert not np.isnan(found[0, 1:]).any()
