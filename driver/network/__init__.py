"""The network compiler: trained networks in, kernel calls for one target out. Its only door.

Other rooms import from here alone. A name is fetched from where it is defined when it is first
asked for, as not every command needs all of numpy, onnx and the search spaces.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driver.network.accuracy.blame import Blamed, blamed
    from driver.network.accuracy.changes import expected_loss
    from driver.network.accuracy.choosing import CHANCE_WORDS, chance_accuracy, kind_of
    from driver.network.accuracy.fewest import first_enough
    from driver.network.accuracy.judgement import Judgement, is_chance, judgement, points_text
    from driver.network.accuracy.judging import Compared, judge_of
    from driver.network.accuracy.kinds import ANSWER_KINDS, AnswerKind, check_kind
    from driver.network.accuracy.measured import KernelCycles, with_measured_cycles
    from driver.network.accuracy.metric import Unit, value_text
    from driver.network.accuracy.noise_sources import NoiseSources, TensorNoise, noise_sources
    from driver.network.accuracy.plans import CYCLES_ARE, PlanCost, RemedyPlan, plans_for
    from driver.network.accuracy.price import estimated_cycles
    from driver.network.accuracy.promise import DEFAULT_POINTS, Promise
    from driver.network.accuracy.remedies import SHARED_SHIFTS, Remedy
    from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL, DEMO_TEST
    from driver.network.examples.operators import OPERATOR_PREFIX, is_operator, operator_lines
    from driver.network.examples.topologies import (
        LARGE_TOPOLOGIES,
        SMALL_TOPOLOGIES,
        TOPOLOGIES,
        random_images,
        write_topology,
    )
    from driver.network.examples.zoo import (
        ZOO_CAPTIONS,
        ZOO_DIGITS,
        ZOO_PREFIX,
        is_built_in,
        model_files,
        short_name,
        zoo_names,
    )
    from driver.network.forms import Forms, NetworkSource, forms_of
    from driver.network.frontend.conformance.cases import conformance_cases
    from driver.network.frontend.conformance.conformance import (
        ConformanceResult,
        conformance_results,
        reasons_text,
    )
    from driver.network.frontend.custom.plugins import forget_plugins, load_plugin, loaded_plugins
    from driver.network.frontend.data import Dataset, dataset_of, load_data, read_arrays
    from driver.network.frontend.dynamic_dimensions import Extents, read_extents
    from driver.network.frontend.for_target import import_for
    from driver.network.frontend.held_out import held_out
    from driver.network.frontend.onnx import import_model
    from driver.network.frontend.origins import Origin
    from driver.network.frontend.seeded import seeded_data
    from driver.network.frontend.whole_model import files_beside, model_digest
    from driver.network.graph.float_run import run_float
    from driver.network.graph.grid import Grid
    from driver.network.graph.ir import (
        Add,
        Conv2d,
        Custom,
        FloatArray,
        Graph,
        GraphInput,
        MatMul,
        Normalize,
        Operator,
        Reduce,
        Shape,
        Softmax,
        Unary,
        Window,
    )
    from driver.network.graph.parts import Arrays
    from driver.network.integer.network import Network, NetworkStep, NetworkTensor
    from driver.network.integer.noise import Noise, noise_between
    from driver.network.integer.qir import (
        INT8_MAX,
        INT8_MIN,
        MAX_WIDE,
        Int32Array,
        QAdd,
        QAffine,
        QAvgPool2d,
        QConv2d,
        QConvTranspose2d,
        QDense,
        QMatMul,
        QProduct,
        QRescale,
        QuantGraph,
        QuantNode,
        Real,
    )
    from driver.network.integer.real_calls import real_calls_of
    from driver.network.integer.real_run import real_workload
    from driver.network.integer.reference import StepRun, run_integer, run_workload, step_runs
    from driver.network.integer.samples import sample_inputs
    from driver.network.integer.search_choice import is_searched
    from driver.network.partition.partitioner import partition_network
    from driver.network.partition.qlinear_layers import QLinearLayer
    from driver.network.partition.unsupported import is_accelerated
    from driver.network.quantize.calibration_notes import calibration_notes
    from driver.network.quantize.fitting import Fitted, fit_quantization, quantize_for
    from driver.network.quantize.float_form import float_form
    from driver.network.quantize.floats import has_no_kernel
    from driver.network.quantize.layer_remedies import (
        readers_of_wide_results,
        remedies_for,
        wide_weights_possible,
        with_remedies,
    )
    from driver.network.quantize.methods import DEFAULT_METHOD, DEFAULT_PERCENT
    from driver.network.quantize.options import AS_USUAL, DATA_NEEDED, Quantization
    from driver.network.quantize.processor_quantization import has_own_arithmetic, in_words
    from driver.network.quantize.quantizer import require_layers
    from driver.network.quantize.ranges import ranges_of, tensors_without_range
else:

    def __getattr__(name: str) -> object:
        if name not in _homes():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_homes()[name]), name)


@cache
def _homes() -> dict[str, str]:
    """The module that defines each name: what the type checker is told above."""
    return {
        alias.name: statement.module
        for statement in ast.walk(ast.parse(Path(__file__).read_text()))
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }
