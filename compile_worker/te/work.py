"""Work that is more than one expression for each element: statements that make several tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefarm.errors import TilefarmError

from compile_worker.ir.expr import Buffer
from compile_worker.ir.stmt import Stmt
from compile_worker.te.tensor import Tensor


class ExpressionError(TilefarmError):
    """A stage is not described as it must be: which, why, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Work:
    """Statements and the tensors that they make: a stage like any other.

    `body` is nests of loops around one block each, in order. `scratch` are buffers that nobody else
    sees. The last stage's tensors are the results of a function and live in scope "dram".
    """

    tensors: tuple[Tensor, ...]
    body: Stmt
    scratch: tuple[Buffer, ...] = ()

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)
