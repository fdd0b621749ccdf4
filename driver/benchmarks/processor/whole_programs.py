"""A program for a processor as a call of this process, with helpers where it has threads."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import InfraError
from tilefarm.threads import start_thread

from compile_worker.codegen.pool import OPEN
from driver.benchmarks.processor.kernels import aligned
from driver.program.model import NetworkProgram

"""Programs in which no kernel shares its work have no pool."""


class WholeProgram:
    """A program and one batch of float32 inputs; `close` ends its helpers.

    Args:
        file: where its shared object is written; nothing may be there that was loaded before.
        threads: that compute together; None: as many as its target has.
        arena: aligned memory for its intermediate tensors; None: some of its own.
    """

    def __init__(
        self,
        program: NetworkProgram,
        inputs: Mapping[str, NDArray[Any]],
        file: Path,
        *,
        threads: int | None = None,
        arena: NDArray[np.uint8] | None = None,
    ) -> None:
        file.write_bytes(program.code)
        self._name = program.name
        self._code = ctypes.CDLL(str(file))
        self._entry = getattr(self._code, program.entry)
        self._outputs = {o.name: aligned(np.zeros(o.shape, np.float32)) for o in program.outputs}
        self._inputs = {i.name: aligned(inputs[i.name][: program.batch]) for i in program.inputs}
        buffers: list[NDArray[Any]] = [
            aligned(np.zeros(program.scratch_nbytes, np.uint8)) if arena is None else arena,
            aligned(np.frombuffer(program.constants, np.uint8)),
            *self._inputs.values(),
            *self._outputs.values(),
        ]
        self._buffers = buffers
        self._handles = (ctypes.c_void_p * len(buffers))(*(each.ctypes.data for each in buffers))
        self._offsets = (ctypes.c_int64 * len(buffers))()
        threads = program.target.model.threads if threads is None else threads
        self._threads = threads if hasattr(self._code, OPEN) else 1
        self._is_closed = False
        self._begun = [threading.Semaphore(0) for _ in range(self._threads - 1)]
        self._broken: list[Exception] = []
        self._helpers = [
            start_thread(
                partial(self._help, begun),
                name="tilefarm helper",
                broken=self._broken.append,
            )
            for begun in self._begun
        ]

    @property
    def has_helpers(self) -> bool:
        """Whether several threads compute a batch together."""
        return bool(self._helpers)

    def fill(self, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Take another batch."""
        for name, values in self._inputs.items():
            values[...] = inputs[name]

    def call(self) -> None:
        """Run the batch."""
        if self._helpers:
            self._code.tilefarm_open_pool(ctypes.c_int64(self._threads))
            for begun in self._begun:
                begun.release()
        failed = self._entry(self._handles, self._offsets)
        if self._helpers:
            self._code.tilefarm_close_pool()
        if failed or self._broken:
            raise InfraError(f"{self._name} ended with an error")

    def outputs(self) -> dict[str, NDArray[np.float32]]:
        """What the last call made of the batch."""
        return {name: values.copy() for name, values in self._outputs.items()}

    def close(self) -> None:
        """End the helpers."""
        self._is_closed = True
        for begun in self._begun:
            begun.release()
        for helper in self._helpers:
            helper.join()

    def _help(self, begun: threading.Semaphore) -> None:
        while begun.acquire() and not self._is_closed:
            self._code.tilefarm_help()
