"""Integer networks of processors, which compute in ONNX's own arithmetic.

What a file quantizes is computed as the file has it. A float network gets uint8 activations with
zero points and int8 weights with a scale for each channel, by calibration data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from tilefarm.errors import DataError, SettingsError
from tilefarm.target import TARGETS

from driver.network.graph.ir import FakeQuantize, FloatArray, Graph, ScaleSums
from driver.network.integer.qir import QuantGraph
from driver.network.quantize.fake_quantization import with_fake_quantization
from driver.network.quantize.onnx_arithmetic import in_onnx_arithmetic
from driver.network.quantize.options import AS_USUAL, Quantization

_HERE: Final = "without it, or --target sim for an accelerator"


def has_own_arithmetic(graph: Graph) -> bool:
    """Whether a network says itself where and how it rounds."""
    return any(isinstance(node.op, FakeQuantize | ScaleSums) for node in graph.nodes)


def quantize_for_processor(
    graph: Graph, calibration: FloatArray | Mapping[str, FloatArray] | None, how: Quantization
) -> QuantGraph:
    """The network in integers, in ONNX's own arithmetic.

    Raises:
        SettingsError: an option is about another arithmetic, or the file decides it.
        DataError: a float network without calibration data.
        ModelError: operators that have no form.
    """
    _refuse_foreign(how)
    if has_own_arithmetic(graph):
        if how != AS_USUAL:
            raise SettingsError(
                f"{graph.name} is quantized in its file, and a processor computes just that",
                "without --calibration and --keep-float",
            )
        return in_onnx_arithmetic(graph)
    if calibration is None:
        raise DataError(
            f"{graph.name} needs --calibrate DATA.npz: it is in float, and data decide its ranges",
            "inputs saved by numpy.savez('data.npz', x=inputs)",
        )
    made = with_fake_quantization(graph, calibration, method=how.method, keep_float=how.keep_float)
    return in_onnx_arithmetic(made)


def _refuse_foreign(how: Quantization) -> None:
    for option, why in _foreign(how):
        raise SettingsError(f"{option}: {why}", _HERE)


def _foreign(how: Quantization) -> Iterator[tuple[str, str]]:
    """Options that a processor's arithmetic has no use for."""
    accelerated = f"for accelerators ({', '.join(list(TARGETS)[:2])}, ...) alone"
    if how.activations == "symmetric":
        yield "--activations symmetric", "activations on a processor have zero points"
    if how.equalize:
        yield "--equalize", f"{accelerated}; here every channel has a scale of its own"
    if how.share_shifts is not None:
        yield "--share-shifts", f"{accelerated}, which shift; a processor multiplies in float32"
    if how.requantize != AS_USUAL.requantize:
        yield f"--requantize {how.requantize}", f"{accelerated}; a processor multiplies in float32"
    if how.correct_bias is not None:
        yield "--correct-bias", accelerated
    if not how.fit_weights:
        yield "--no-fit-weights", f"{accelerated}; here weights are rounded to the nearest"
    for option, names in (
        ("--wide-weights", how.wide),
        ("--wide-activations", how.wide_activations),
    ):
        if names:
            yield option, f"{accelerated}; --keep-float keeps layers in float32 here"


def in_words(graph: Graph, how: Quantization) -> str:
    """How it became integers."""
    if has_own_arithmetic(graph):
        return "8 bits as the file has them"
    words = str(replace(how, activations=AS_USUAL.activations))
    return f"uint8 with zero points, weights int8 by channel: {words}"
