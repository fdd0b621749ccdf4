"""Quantized networks of the zoo in the arithmetic of their files, beside ONNX Runtime.

On their integers both agree to the bit. As they come, ONNX Runtime sums floats in an order of its
own: now and then that rounds to another integer, and a table says how often.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import onnx
import pytest
from kit.networks.onnx_runtime import runtime_answers
from kit.networks.qlinear_form import qlinear_form
from kit.shared import zoo_folder
from numpy.typing import NDArray

from driver.network.frontend.onnx import import_model
from driver.network.integer.reference import run_integer
from driver.network.quantize.onnx_arithmetic import in_onnx_arithmetic

SPANS: Final = {
    "ad_int8_qdq": (-12.0, 4.0),
    "kws_int8_qdq": (-120.0, 100.0),
    "mobilenet_v1_0.25_128_quant_qdq": (-1.0, 1.0),
    "person_detect_qdq": (-1.0, 1.0),
    "resnet8_int8_qdq": (0.0, 255.0),
    "vww_int8_qdq": (0.0, 1.0),
}
"""Every quantized model, and what its inputs are drawn from."""
SAMPLES: Final = 20
MOST_AWAY: Final = 0.01
"""On average, of the span of an output: 30 layers pass differences of one step on."""


def differences(model: Path, span: tuple[float, float]) -> tuple[int, int, float]:
    """How many elements differ of how many, and how far on average, of the span of all."""
    graph = in_onnx_arithmetic(import_model(model, keeps_integers=True))
    (given,) = graph.inputs
    rng = np.random.default_rng(7)
    x: NDArray[np.float32] = rng.uniform(*span, (SAMPLES, *given.given_shape)).astype(np.float32)
    ((name, wanted),) = runtime_answers(model, x).items()
    runs = [run_integer(graph, {given.name: each.transpose(given.axes)})[name] for each in x]
    away = np.abs(np.stack(runs).reshape(wanted.shape) - wanted)
    return int((away > 0).sum()), away.size, float(away.mean() / np.ptp(wanted))


@pytest.mark.slow
@pytest.mark.parametrize("name", SPANS)
def test_the_zoo_agrees_with_onnx_runtime(name: str, tmp_path: Path) -> None:
    model = zoo_folder() / "models" / f"{name}.onnx"
    integers = tmp_path / model.name
    onnx.save(qlinear_form(onnx.load(model)), integers)
    on_integers, elements, _ = differences(integers, SPANS[name])
    in_pairs, _, away = differences(model, SPANS[name])
    print(
        f"{name:32} {elements:6} elements: {on_integers} differ on integers, {in_pairs} in pairs,"
        f" by {away:.3%} of their span on average"
    )
    assert on_integers == 0
    assert away < MOST_AWAY


def test_no_quantized_model_is_left_out() -> None:
    models = {path.stem for path in (zoo_folder() / "models").glob("*_qdq.onnx")}
    assert models == set(SPANS)
