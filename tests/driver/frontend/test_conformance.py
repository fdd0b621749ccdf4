"""ONNX's own node examples: taken ones give the published answers, the others are refused."""

from __future__ import annotations

import importlib
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.onnx_models import saved
from onnx import numpy_helper
from onnx.backend.test.case import node as examples
from tilefarm.errors import ModelError

from driver.frontend import import_model
from driver.frontend.file import OPSETS
from driver.graph import run_float

_FILES_TEXT = """
add averagepool batch_normalization clip conv div dropout flatten gemm globalaveragepool
globalmaxpool identity matmul maxpool mul reducemean relu reshape softmax squeeze sub transpose
unsqueeze
"""
FILES = _FILES_TEXT.split()

_TAKEN_TEXT = """
averagepool_2d_ceil averagepool_2d_ceil_last_window_starts_on_pad averagepool_2d_default
averagepool_2d_pads averagepool_2d_pads_count_include_pad averagepool_2d_precomputed_pads
averagepool_2d_precomputed_pads_count_include_pad averagepool_2d_precomputed_same_upper
averagepool_2d_precomputed_strides averagepool_2d_same_lower averagepool_2d_same_upper
averagepool_2d_strides basic_conv_with_padding basic_conv_without_padding batchnorm_epsilon
batchnorm_example clip clip_default_max clip_default_min conv_with_autopad_same
conv_with_strides_and_asymmetric_padding conv_with_strides_no_padding conv_with_strides_padding
flatten_axis1 flatten_default_axis flatten_negative_axis3 gemm_alpha gemm_beta
gemm_default_no_bias gemm_default_scalar_bias gemm_default_single_elem_vector_bias
gemm_default_vector_bias gemm_default_zero_bias gemm_transposeB globalaveragepool
globalaveragepool_precomputed globalmaxpool globalmaxpool_precomputed matmul_2d maxpool_2d_ceil
maxpool_2d_ceil_output_size_reduce_by_one maxpool_2d_default maxpool_2d_pads
maxpool_2d_precomputed_pads maxpool_2d_precomputed_same_upper maxpool_2d_precomputed_strides
maxpool_2d_same_lower maxpool_2d_same_upper maxpool_2d_strides relu reshape_extended_dims
reshape_negative_dim reshape_reduced_dims reshape_reordered_last_dims
reshape_zero_and_negative_dim reshape_zero_dim softmax_example softmax_large_number
squeeze_negative_axes transpose_all_permutations_0 unsqueeze_axis_1 unsqueeze_axis_2
unsqueeze_negative_axes unsqueeze_three_axes unsqueeze_two_axes unsqueeze_unsorted_axes
"""
TAKEN = _TAKEN_TEXT.split()

REFUSED = {
    "add": "only one value per channel",
    "averagepool_1d_default": "only [N, C, H, W] is supported",
    "averagepool_2d_dilations": "dilations [2, 2]",
    "batchnorm_example_training_mode": "further output",
    "clip_example": "not [N, C, ...]",
    "dropout_default": "is not computed from the input",
    "flatten_axis0": "changes the batch axis",
    "gemm_transposeA": "transA exchanges the batch with the features",
    "matmul_3d": "only two axes each",
    "maxpool_2d_uint8": "only float32 is supported",
    "maxpool_with_argmax_2d_precomputed_pads": "further output 'z' is used",
    "reshape_one_dim": "changes the batch axis",
    "softmax_axis_2": "only channels (axis 1) are supported",
    "training_dropout": "training mode is not supported",
    "transpose_all_permutations_2": "moves data",
}


@cache
def cases() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in FILES:
            importlib.import_module(f"onnx.backend.test.case.node.{name}")
    return {case.name.removeprefix("test_"): case for case in examples._NodeTestCases}


def promoted(case: Any) -> onnx.ModelProto:
    """The example with all inputs but the first as weights, in an operator set that we take."""
    made = onnx.ModelProto()
    made.CopyFrom(case.model)
    for entry in made.opset_import:
        entry.version = min(entry.version, OPSETS[-1])
    arrays, _ = case.data_sets[0]
    for value, array in zip(list(made.graph.input)[1:], arrays[1:], strict=True):
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
    return made


@pytest.mark.parametrize("name", TAKEN)
def test_a_published_answer(name: str, tmp_path: Path) -> None:
    case = cases()[name]
    arrays, expected = case.data_sets[0]
    graph = import_model(saved(promoted(case), tmp_path))
    (given,) = graph.inputs
    (got,) = run_float(graph, {given.name: arrays[0].transpose(given.axes)}).values()
    np.testing.assert_allclose(got, expected[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_why(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(saved(promoted(cases()[name]), tmp_path))
    assert REFUSED[name] in caught.value.what


def test_no_example_is_taken_wrongly(tmp_path: Path) -> None:
    """Every other example of these operators is either refused, or listed above."""
    operators = {
        case.model.graph.node[0].op_type for name, case in cases().items() if name in TAKEN
    }
    for name, case in cases().items():
        if name in TAKEN or case.model.graph.node[0].op_type not in operators:
            continue
        with pytest.raises(ModelError):
            import_model(saved(promoted(case), tmp_path))
