"""ONNX's own test cases: some of those that are taken, one by one, and why others are not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from driver.network.frontend.conformance.cases import Case, made_cases
from driver.network.frontend.conformance.conformance import conformance_result

_MODULES_TEXT = """
add batch_normalization clip concat conv convtranspose div dropout flatten gemm
globalaveragepool globalmaxpool identity matmul max mean min mul reducemean relu reshape
slice softmax split squeeze sub sum transpose unsqueeze abs acos acosh asin asinh atan atanh ceil
celu cos cosh elu erf exp floor gelu hardsigmoid hardswish leakyrelu log neg reciprocal selu sigmoid
sin sinh softplus softsign sqrt tan tanh thresholdedrelu depthtospace expand gather gatherelements
pad resize spacetodepth tile upsample
"""
MODULES = _MODULES_TEXT.split()

_TAKEN_TEXT = """
basic_conv_with_padding basic_conv_without_padding batchnorm_epsilon batchnorm_example clip
clip_default_max clip_default_min conv_with_autopad_same conv_with_strides_and_asymmetric_padding
conv_with_strides_no_padding conv_with_strides_padding concat_2d_axis_1 concat_2d_axis_negative_1
concat_3d_axis_1 concat_3d_axis_negative_2 convtranspose convtranspose_autopad_same
convtranspose_dilations convtranspose_group_2 convtranspose_group_2_image_3 flatten_axis1
flatten_default_axis flatten_negative_axis3 gemm_all_attributes gemm_alpha gemm_beta
gemm_default_no_bias gemm_default_scalar_bias gemm_default_single_elem_vector_bias
gemm_default_vector_bias gemm_default_zero_bias gemm_transposeA gemm_transposeB globalaveragepool
globalaveragepool_precomputed globalmaxpool globalmaxpool_precomputed matmul_2d matmul_3d matmul_4d
matmul_bcast relu reshape_extended_dims reshape_negative_dim reshape_reduced_dims
reshape_reordered_last_dims reshape_zero_and_negative_dim reshape_zero_dim slice_end_out_of_bounds
slice_neg softmax_example softmax_large_number split_2d_uneven_split_opset18 split_equal_parts_2d
split_equal_parts_2d_opset13 split_variable_parts_2d_opset13 split_variable_parts_2d_opset18
squeeze_negative_axes transpose_all_permutations_0 unsqueeze_axis_1 unsqueeze_axis_2
unsqueeze_negative_axes unsqueeze_three_axes unsqueeze_two_axes unsqueeze_unsorted_axes abs acos
acosh asin asinh atan atanh ceil celu cos cosh elu elu_default erf exp floor gelu_default_2
gelu_tanh_2 hardsigmoid hardsigmoid_default hardswish leakyrelu leakyrelu_default log neg reciprocal
selu selu_default sigmoid sin sinh softplus softsign sqrt tan tanh thresholdedrelu
thresholdedrelu_default depthtospace_crd_mode_example depthtospace_example expand_dim_unchanged
gather_1 gather_2d_indices resize_downsample_scales_nearest resize_downsample_sizes_nearest
resize_upsample_scales_nearest resize_upsample_sizes_nearest resize_upsample_scales_nearest_axes_2_3
resize_upsample_sizes_nearest_axes_3_2 resize_upsample_sizes_nearest_ceil_half_pixel
resize_upsample_sizes_nearest_floor_align_corners
resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric slice_default_axes slice_default_steps
slice_negative_axes spacetodepth spacetodepth_crd_mode_example spacetodepth_dcr_mode_example
spacetodepth_example upsample_nearest add add_bcast sub sub_bcast div max_one_input min_two_inputs
sum_example mean_example concat_1d_axis_0 concat_2d_axis_0 concat_3d_axis_2
split_1d_uneven_split_opset18 transpose_all_permutations_2 transpose_default slice flatten_axis0
reshape_one_dim reshape_reordered_all_dims squeeze unsqueeze_axis_0 clip_example constant_pad
gather_0 gather_elements_0 tile tile_precomputed expand_dim_changed identity
convtranspose_output_shape convtranspose_pads convtranspose_1d celu_bfloat16
"""
TAKEN = _TAKEN_TEXT.split()

REFUSED = {
    "batchnorm_example_training_mode": "further output",
    "convtranspose_3d": "input [1, 1, 3, 4, 5]",
    "training_dropout": "training mode is not supported",
}


@cache
def known() -> dict[str, Case]:
    return {case.name.removeprefix("test_"): case for case in made_cases(MODULES)}


@pytest.mark.parametrize("name", TAKEN)
def test_a_published_answer(name: str, tmp_path: Path) -> None:
    found = conformance_result(known()[name], tmp_path)
    assert (found.verdict, found.why) == ("passed", "")


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_why(name: str, tmp_path: Path) -> None:
    found = conformance_result(known()[name], tmp_path)
    assert found.verdict == "skipped"
    assert REFUSED[name] in found.why


def test_a_published_answer_in_bfloat16_has_8_bits(tmp_path: Path) -> None:
    case = known()["celu_bfloat16"]
    (answer,) = case.outputs
    for off, verdict in ((2.0**-8, "passed"), (2.0**-6, "failed")):
        wanted = (answer.astype(np.float32) + off * np.abs(answer).max()).astype(answer.dtype)
        assert conformance_result(replace(case, outputs=(wanted,)), tmp_path).verdict == verdict
