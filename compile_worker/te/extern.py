"""Hand-written stages: any statement of the IR over declared inputs and outputs.

    x = placeholder(...); out = Buffer("out", (8,), INT32, "dram")
    extern("reversed", [x], [out], For(i, 8, Store(out, (7 - i,), x[i])))

    block reversed
      for i in 8
        out[7 - i] = x[i]

A statement, not the name of a foreign function: an object may need nothing but the accelerator's
runtime, so that it runs unchanged wherever that is. And a statement is its own model: the
interpreter, the schedules, and every CPU understand it.
"""

from __future__ import annotations

from collections.abc import Sequence

from compile_worker.ir.expr import Buffer, Load
from compile_worker.ir.stmt import Alloc, Block, For, If, Seq, Stmt, Store
from compile_worker.ir.visit import find, variables, walk
from compile_worker.te.tensor import Tensor
from compile_worker.te.work import ExpressionError, Work


def extern(name: str, inputs: Sequence[Tensor], outputs: Sequence[Buffer], body: Stmt) -> Work:
    """The outputs as a hand-written statement makes them; a schedule takes it as one block.

    The statement's own loops and allocations are its private matter. It must write all that anybody
    reads of its outputs.

    Raises:
        ExpressionError: the statement is not of loops, branches and stores, uses a buffer or a
            variable that it was not given, or leaves an output alone.
    """
    given = {tensor.buffer for tensor in inputs}
    own = {alloc.buffer for alloc in find(body, Alloc)}
    stored = {store.buffer for store in find(body, Store)}
    loaded = {load.buffer for load in find(body, Load)}
    _refuse(name, "holds", [type(at).__name__ for at in walk(body) if _foreign(at)], _FORM)
    unbound = variables(body) - {loop.var for loop in find(body, For)}
    _refuse(name, "uses", [var.name for var in unbound], "variables of loops that it has itself")
    unknown = loaded - given - own - set(outputs)
    _refuse(name, "reads", [each.name for each in unknown], "inputs that are declared")
    unknown = stored - own - set(outputs)
    _refuse(name, "writes", [each.name for each in unknown], "outputs that are declared")
    missing = set(outputs) - stored
    _refuse(name, "does not write", [each.name for each in missing], "every output")
    return Work(tuple(map(Tensor, outputs)), Block(name, body))


_FORM = "loops, branches, allocations and stores only"


def _foreign(node: object) -> bool:
    return isinstance(node, Stmt) and not isinstance(node, For | If | Seq | Store | Alloc)


def _refuse(name: str, verb: str, what: Sequence[str], legal: str) -> None:
    """Raise ExpressionError if there is anything to complain about."""
    if what:
        listed = ", ".join(sorted(set(what)))
        raise ExpressionError(f"extern {name} {verb} {listed}", legal)
