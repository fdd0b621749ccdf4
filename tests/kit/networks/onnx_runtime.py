"""ONNX Runtime with its optimizer off, where it is installed: what ONNX's arithmetic is held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray


def runtime_answers(model: Path, x: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """The outputs for each of some inputs [samples, ...] of a model's only input, by their names.

    The test that asks is skipped where ONNX Runtime is not installed.
    """
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3  # it warns of every constant that nothing reads
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    names = [output.name for output in session.get_outputs()]
    answers = [session.run(None, {given.name: sample}) for sample in x]
    return {
        name: np.stack(each) for name, each in zip(names, zip(*answers, strict=True), strict=True)
    }
