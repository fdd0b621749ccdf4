"""ONNX's own test cases through our importer: what is taken must give the published answers.

In cases of one operator the scales, zero points and weights are inputs of the graph: all but the
first input are made weights, or if that is refused, none is.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import onnx
import onnx.version_converter
from numpy.typing import NDArray
from onnx import numpy_helper
from tilefarm.errors import ModelError

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.conformance.cases import Case, CaseKind
from driver.network.frontend.file import OPSETS
from driver.network.frontend.onnx import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import FloatArray, Graph, GraphInput, Shape

Verdict = Literal["passed", "skipped", "failed"]

REASONS: Final = Path(__file__).with_name("conformance.json")
"""Why cases are skipped: by operator, for each reason the names of its cases."""

_TODAY: Final = 13
_NODE_REFUSED: Final = re.compile(r"\((\w+)\): ([^;\n]*)")
_RELATIVE, _ABSOLUTE = 1e-3, 1e-5
_OF_BFLOAT16: Final = 2.0**-7
"""How far bfloat16 may be off, of the largest: every step on the way to it had 8 bits."""
_LONGEST_REASON: Final = 110


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken:
    """The network of a case, and the case's inputs by name as the network takes them."""

    graph: Graph
    inputs: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceResult:
    """What became of a case, and why unless it passed."""

    name: str
    kind: CaseKind
    operator: str
    verdict: Verdict
    why: str = ""


def conformance_results(chosen: Iterator[Case] | Sequence[Case]) -> Iterator[ConformanceResult]:
    """What becomes of each case."""
    with tempfile.TemporaryDirectory(prefix="tilefarm-conformance-") as folder:
        for case in chosen:
            yield conformance_result(case, Path(folder))


def conformance_result(case: Case, folder: Path) -> ConformanceResult:
    """Imports and runs one case.

    Args:
        folder: where the model is written.
    """
    verdict, why = _judged(case, folder)
    return ConformanceResult(
        name=case.name, kind=case.kind, operator=case.operator, verdict=verdict, why=why
    )


def reasons() -> dict[str, str]:
    """Why each case that is known to be skipped is, by its name."""
    known: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(REASONS.read_text())
    return {
        name: why
        for of_operator in known.values()
        for why, names in of_operator.items()
        for name in names
    }


def reasons_text(found: Sequence[ConformanceResult]) -> str:
    """The file of reasons for these results."""
    document: dict[str, dict[str, list[str]]] = {}
    for each in sorted(found, key=lambda r: (r.operator, r.name)):
        if each.verdict == "skipped":
            document.setdefault(each.operator, {}).setdefault(each.why, []).append(each.name)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def taken(case: Case, folder: Path) -> Taken | str:
    """The network of a case and its inputs, or why it is skipped.

    Args:
        folder: where the model is written.
    """
    if any(not isinstance(x, np.ndarray) for x in (*case.inputs, *case.outputs)):
        return "its values are sequences, optional, or of types that numpy lacks"
    if any(map(_leaves_float32, (*case.inputs, *case.outputs))):
        return "its values lie beyond float32"
    try:
        model = _in_our_set(case.model)
    except (RuntimeError, ValueError, onnx.checker.ValidationError):
        return "the onnx package cannot bring it to an operator set of today"
    path = folder / "case.onnx"
    refusals = []
    for made in (_promoted(model, case.inputs), model):
        path.write_bytes(made.SerializeToString())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _with_inputs(import_model(path), case)
        except ModelError as refusal:
            refusals.append(_shortened(refusal.what, str(path)))
    return refusals[0]


def _judged(case: Case, folder: Path) -> tuple[Verdict, str]:
    found = taken(case, folder)
    if isinstance(found, str):
        return "skipped", found
    return _compared(_answers(found), case)


def _leaves_float32(values: NDArray[Any]) -> bool:
    if values.dtype != np.float64:
        return False
    with np.errstate(over="ignore"):
        return bool((np.isfinite(values) & ~np.isfinite(values.astype(np.float32))).any())


def _with_inputs(graph: Graph, case: Case) -> Taken:
    names = [value.name for value in _open_inputs(case.model)]
    given = dict(zip(names, case.inputs, strict=False))
    return Taken(graph=graph, inputs={i.name: _as_given(given[i.name], i) for i in graph.inputs})


def _answers(found: Taken) -> Mapping[str, NDArray[Any]]:
    with np.errstate(all="ignore"):
        reals = run_float(found.graph, found.inputs)
    return {
        output.name: reals[output.name] if output.grid is None else output.grid.integers(values)
        for output, values in zip(found.graph.outputs, reals.values(), strict=True)
    }


def _as_given(values: NDArray[Any], to: GraphInput) -> FloatArray:
    reals = np.asarray(values, np.float32) if to.grid is None else to.grid.reals(values)
    return reals.reshape(to.given_shape).transpose(to.axes)


def _compared(answers: Mapping[str, NDArray[Any]], case: Case) -> tuple[Verdict, str]:
    for (name, got), wanted in zip(answers.items(), case.outputs, strict=False):
        if not _is_held(wanted.shape, got.shape):
            return "failed", f"{name} has shape {list(got.shape)}, not {list(wanted.shape)}"
        got = got.reshape(wanted.shape)
        relative, absolute = (0.0, 0.0) if got.dtype.kind in "iub" else (_RELATIVE, _ABSOLUTE)
        coarse = wanted.dtype.name == "bfloat16"
        wanted = wanted.astype(got.dtype)
        if coarse:
            finite = np.abs(wanted[np.isfinite(wanted)])
            absolute = _OF_BFLOAT16 * float(finite.max(initial=0.0))
        if not np.allclose(got, wanted, rtol=relative, atol=absolute, equal_nan=True):
            away = np.abs(got.astype(np.float64) - wanted).max()
            return "failed", f"{name} is off by {away:.3g}"
    return "passed", ""


def _is_held(shape: Shape, held: Shape) -> bool:
    """Whether the graph may hold a tensor of the file so, see `frontend.batch_layout`."""
    return shape == held or held in [held_shape(shape, batch) for batch in {1, *shape[:1]}]


def _in_our_set(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in an operator set that we take."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for entry in made.opset_import:
        if not entry.domain and entry.version < OPSETS[0]:
            return onnx.version_converter.convert_version(made, _TODAY)
    return made


def _promoted(model: onnx.ModelProto, inputs: Sequence[NDArray[Any]]) -> onnx.ModelProto:
    """The model with all inputs but the first as weights."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value, array in list(zip(_open_inputs(model), inputs, strict=False))[1:]:
        made.graph.initializer.append(numpy_helper.from_array(array, value.name))
    return made


def _open_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that have no value in the file."""
    known = {weight.name for weight in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in known]


def _shortened(why: str, path: str) -> str:
    """A refusal without names of files and nodes: the operator and the reason of the first node."""
    node = _NODE_REFUSED.search(why)
    words = (
        f"{node[1]}: {node[2]}" if node else " ".join(why.replace(path, "").lstrip(": ").split())
    )
    return words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON]}..."
