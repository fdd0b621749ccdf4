"""Shapes as ONNX itself infers them, in a process of its own.

The package does it in C++ that ends its process on some damaged models; here that is no answer.
"""

from __future__ import annotations

import faulthandler
import math
import multiprocessing
import os
import resource
import warnings
from multiprocessing.connection import Connection
from typing import Final

import onnx

from driver.network.graph.ir import Shape

_SECONDS: Final = 20.0
_MOST_ELEMENTS: Final = 1 << 30


def inferred_shapes(model: onnx.ModelProto) -> dict[str, Shape]:
    """The static shapes of what nodes make, as far as ONNX can tell; empty where it fails."""
    processes = multiprocessing.get_context("fork")
    ours, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=_tell, args=(model, theirs), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads beside it do it no harm
        child.start()
    theirs.close()
    try:
        with ours:
            found: dict[str, Shape] = ours.recv() if ours.poll(_SECONDS) else {}
    except EOFError:
        found = {}
    child.kill()
    child.join()
    return found


def _tell(model: onnx.ModelProto, answer: Connection) -> None:
    """What the child does; how it ends is nobody's to read, and leaves no core file."""
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    shapes = {}
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception:  # the package's own words about damaged models are nothing for a user
        return
    for value in inferred.graph.value_info:
        shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        if len(shape) > 1 and min(shape) > 0 and math.prod(shape) <= _MOST_ELEMENTS:
            shapes[value.name] = shape
    answer.send(shapes)
