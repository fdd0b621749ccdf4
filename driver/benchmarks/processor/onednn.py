"""oneDNN by its C interface (version 2) where it is installed: a convolution on one thread.

Names, numbers and structures are those of `dnnl_types.h` of oneDNN 2.6. Tensors lie as oneDNN likes
them best, weights are packed before, and results are scaled by channel and get their zero point, as
ours are.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Sequence
from typing import Final

import numpy as np
from tilefarm.dtype import DType

from driver.benchmarks.processor.kernels import Call
from driver.network import QLinearLayer

_MAJOR: Final = 2
_CPU, _DEFAULT_STREAM = 1, 1
_INFERENCE, _DIRECT, _ANY = 96, 1, 1
_TYPES: Final = {"s32": 4, "s8": 5, "u8": 6}
_SRC, _DST, _WEIGHTS, _BIAS = 1, 17, 33, 41
_QUERIES: Final = {_SRC: 129, _WEIGHTS: 131, _DST: 133}
_ALLOCATE: Final = ctypes.c_void_p(-1)
_PER_CHANNEL: Final = 1 << 1
_LINE: Final = 2
"""The layout `dnnl_x`: one axis."""

_DESC_NBYTES, _CONVOLUTION_NBYTES = 696, 5976


class _Argument(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_int), ("memory", ctypes.c_void_p))


class OneDnnError(Exception):
    """A call that oneDNN refused: its name and its status."""


class OneDnn:
    """The library, on one thread of its own.

    Raises:
        OneDnnError: it is not installed, or has another version.
    """

    def __init__(self) -> None:
        found = ctypes.util.find_library("dnnl")
        if found is None:
            raise OneDnnError("oneDNN is not installed (Debian has it as libdnnl-dev)")
        self._lib = ctypes.CDLL(found)
        self._lib.dnnl_version.restype = ctypes.POINTER(ctypes.c_int)
        major, minor, patch = self._lib.dnnl_version()[:3]
        self.version = f"{major}.{minor}.{patch}"
        if major != _MAJOR:
            raise OneDnnError(f"oneDNN is {self.version}, and only version {_MAJOR} is known here")
        if openmp := ctypes.util.find_library("gomp"):
            ctypes.CDLL(openmp).omp_set_num_threads(1)
        self._engine, self._stream = ctypes.c_void_p(), ctypes.c_void_p()
        self._do("dnnl_engine_create", ctypes.byref(self._engine), _CPU, ctypes.c_size_t(0))
        self._do("dnnl_stream_create", ctypes.byref(self._stream), self._engine, _DEFAULT_STREAM)
        self._lib.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
        self._lib.dnnl_memory_desc_get_size.restype = ctypes.c_size_t

    def convolution(self, layer: QLinearLayer) -> Call:
        """A call that computes a layer, on tensors of its own."""
        primitive = ctypes.c_void_p()
        desc = self._primitive_desc(layer)
        self._do("dnnl_primitive_create", ctypes.byref(primitive), desc)
        memories = {arg: self._queried(desc, query) for arg, query in _QUERIES.items()}
        memories[_BIAS] = self._memory(self._described((layer.outputs,), "s32"))
        arguments = (_Argument * len(memories))(
            *(_Argument(arg, memory) for arg, memory in memories.items())
        )

        def call() -> None:
            self._do("dnnl_primitive_execute", primitive, self._stream, len(memories), arguments)
            self._do("dnnl_stream_wait", self._stream)

        return call

    def _primitive_desc(self, layer: QLinearLayer) -> ctypes.c_void_p:
        kind = "u8" if layer.dtype is DType.UINT8 else "s8"
        n, inputs, height, width = layer.data
        out = (n, layer.outputs, *layer.window.positions(height, width))
        kernel = layer.window.kernel
        weights = (
            (layer.outputs, 1, 1, *kernel) if layer.depthwise else (layer.outputs, inputs, *kernel)
        )
        top, left, bottom, right = layer.window.pad
        spread = [each - 1 for each in layer.window.dilation]
        desc = ctypes.create_string_buffer(_CONVOLUTION_NBYTES)
        self._do(
            "dnnl_dilated_convolution_forward_desc_init",
            desc,
            _INFERENCE,
            _DIRECT,
            self._described(layer.data, kind),
            self._described(weights, "s8"),
            self._described((layer.outputs,), "s32"),
            self._described(out, kind),
            *map(_numbers, (layer.window.stride, spread, (top, left), (bottom, right))),
        )
        made = ctypes.c_void_p()
        attributes = self._attributes(layer)
        self._do(
            "dnnl_primitive_desc_create", ctypes.byref(made), desc, attributes, self._engine, None
        )
        return made

    def _attributes(self, layer: QLinearLayer) -> ctypes.c_void_p:
        """Scales by channel, and the zero point of the results."""
        attributes = ctypes.c_void_p()
        self._do("dnnl_primitive_attr_create", ctypes.byref(attributes))
        scales = (ctypes.c_float * layer.outputs)(*[0.001] * layer.outputs)
        count = ctypes.c_int64(layer.outputs)
        self._do("dnnl_primitive_attr_set_output_scales", attributes, count, _PER_CHANNEL, scales)
        zero = (ctypes.c_int32 * 1)(layer.zero)
        self._do(
            "dnnl_primitive_attr_set_zero_points", attributes, _DST, ctypes.c_int64(1), 0, zero
        )
        return attributes

    def _described(self, shape: Sequence[int], kind: str) -> ctypes.Array[ctypes.c_char]:
        desc = ctypes.create_string_buffer(_DESC_NBYTES)
        self._do(
            "dnnl_memory_desc_init_by_tag",
            desc,
            len(shape),
            _numbers(shape),
            _TYPES[kind],
            _ANY if len(shape) > 1 else _LINE,
        )
        return desc

    def _queried(self, desc: ctypes.c_void_p, query: int) -> ctypes.c_void_p:
        return self._memory(ctypes.c_void_p(self._lib.dnnl_primitive_desc_query_md(desc, query, 0)))

    def _memory(self, desc: ctypes.c_void_p | ctypes.Array[ctypes.c_char]) -> ctypes.c_void_p:
        """Memory full of something: pages that nobody wrote are all one and the same."""
        memory, handle = ctypes.c_void_p(), ctypes.c_void_p()
        self._do("dnnl_memory_create", ctypes.byref(memory), desc, self._engine, _ALLOCATE)
        self._do("dnnl_memory_get_data_handle", memory, ctypes.byref(handle))
        nbytes = self._lib.dnnl_memory_desc_get_size(desc)
        content = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
        ctypes.memmove(handle, content.ctypes.data, nbytes)
        return memory

    def _do(self, name: str, *arguments: object) -> None:
        status = getattr(self._lib, name)(*arguments)
        if status:
            raise OneDnnError(f"{name} of oneDNN {self.version} ended with status {status}")


def _numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """Values as `dnnl_dims_t`, which has room for twelve."""
    return (ctypes.c_int64 * 12)(*values)
