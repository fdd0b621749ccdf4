"""An intrinsic of a user's own, as a Python file declares it: an expression, and what computes it.

    @custom_intrinsic("llvm.sadd.sat", of=DType.INT8)
    def saturated(a, b):
        return Cast(DType.INT8, Min(Max(widened(a) + widened(b), low), high))

The function is called once, with stand-ins of the operands, for the expression. It becomes a pass
behind the compiler's last one: wherever a kernel of the processor computes that, it calls LLVM's
intrinsic. All that holds of passes holds of it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tilefarm.artifact import PluginText
from tilefarm.dtype import DType
from tilefarm.errors import SettingsError
from tilefarm.target import Target

from compile_worker.codegen.elf import undefined_symbols
from compile_worker.codegen.hosts import this_host
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.text import VALUE_TYPES
from compile_worker.ir.expr import (
    Buffer,
    Expr,
    Load,
)
from compile_worker.ir.func import Func
from compile_worker.ir.intrinsics import UserIntrinsic, know_intrinsic
from compile_worker.ir.matching import matched
from compile_worker.ir.node import Node
from compile_worker.ir.simplify import simplify
from compile_worker.ir.visit import find, rewrite
from compile_worker.plugins.custom_pass import CustomPass
from compile_worker.plugins.failure import failure
from compile_worker.plugins.patience import OverdueError, patience

AFTER: Final = "rewrite_storage"
"""The last pass of the processor: what is left goes to LLVM as it is."""

SECONDS: Final = 10.0
"""What the function may take for its expression."""

DATA_TYPES: Final = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.FLOAT32)
"""Of operands and results."""

_LANES: Final = 16
"""Of the vector that LLVM is asked about; it takes others if it takes this."""

_LLVM: Final = re.compile(r"llvm\.(?!x86|aarch64|arm)[a-z0-9]+(\.[a-z0-9]+)*")
"""Without those of one processor: they have one width, and LLVM dies of them on another one."""

_LITERAL: Final = re.compile(r"i[0-9]+ (true|false|-?[0-9]+)")

Meaning: TypeAlias = Callable[..., Any]
"""Gives an expression, or is a script, which is never run."""


@dataclass(frozen=True, slots=True)
class CustomIntrinsic:
    """What a file says of it; see `compile_worker.ir.intrinsics.UserIntrinsic`."""

    name: str
    meaning: Meaning
    llvm: str
    dtype: DType | None
    literals: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def custom_intrinsic(
    llvm: str, *, of: DType | None = None, literals: Sequence[str] = (), needs: str = ""
) -> Callable[[Meaning], CustomIntrinsic]:
    """Declares the function below it as what an intrinsic of LLVM, or a few of them, computes.

    Args:
        llvm: an intrinsic without memory that is overloaded by one type, without its suffix. Of a
            nest of loops: the body of a function of LLVM's, see `plugins.tile_intrinsic`.
        of: the type of operands and result; None: the function is a script of a nest of loops.
        literals: what LLVM's takes behind the operands, as `("i1 false",)` of llvm.abs.
        needs: words of /proc/cpuinfo that a processor has which can do a nest's.
    """
    if not isinstance(llvm, str) or not isinstance(needs, str):
        raise TypeError("the intrinsic of LLVM's, and what it needs, are texts")

    def declared(function: Meaning) -> CustomIntrinsic:
        words = tuple(needs.split())
        return CustomIntrinsic(function.__name__, function, llvm, of, tuple(literals), words)

    return declared


def pass_of(mine: CustomIntrinsic, plugin: PluginText) -> CustomPass:
    """The pass that calls the intrinsic wherever its expression is; from now on it is known here.

    Raises:
        SettingsError: as of `intrinsic_of`.
    """
    known = intrinsic_of(mine, plugin)
    know_intrinsic(known)

    def rule(node: Node) -> Node | None:
        if not isinstance(node, Expr) or node.dtype is not known.dtype:
            return None
        found = matched(known.meaning, node, known.operands, {})
        return None if found is None else known.call([found[each] for each in known.operands])

    def run(func: Func, target: Target) -> Func:
        del target
        return Func(func.name, func.params, rewrite(func.body, rule), func.attrs)

    return CustomPass(mine.name, AFTER, run)


def intrinsic_of(mine: CustomIntrinsic, plugin: PluginText) -> UserIntrinsic:
    """The intrinsic, once it is known what it means and that LLVM has it.

    Raises:
        SettingsError: its function fails or gives no such expression, or LLVM has none such.
    """
    if mine.dtype is None or mine.dtype not in DATA_TYPES:
        why = f"has the type {mine.dtype}, which no data have"
        raise refused(mine, plugin, why, f"one of {', '.join(map(str, DATA_TYPES))}")
    names = tuple(inspect.signature(mine.meaning).parameters)
    operands = tuple(Load(Buffer(name, (), mine.dtype, "local"), ()) for name in names)
    meaning = _meaning(mine, operands, plugin)
    lacks = ", ".join(sorted({x.buffer.name for x in operands} - _read(meaning)))
    if meaning.dtype is not mine.dtype or lacks or isinstance(meaning, Load):
        why = f"its expression has no {lacks}" if lacks else f"gives {meaning.dtype}"
        raise refused(mine, plugin, why, f"an expression of {mine.dtype} with all operands")
    found = UserIntrinsic(
        f"{mine.name}_{plugin.digest.short}", operands, meaning, mine.llvm, mine.literals
    )
    why = _refusal(found)
    if why:
        hint = "an intrinsic of LLVM's that is overloaded by one type, without its suffix"
        raise refused(mine, plugin, why, hint)
    return found


def _meaning(mine: CustomIntrinsic, operands: Sequence[Load], plugin: PluginText) -> Expr:
    try:
        with patience(SECONDS):
            made = mine.meaning(*operands)
    except (Exception, SystemExit, OverdueError) as error:
        why = f"fails: {failure(error, plugin.named)}"
        raise refused(mine, plugin, why, "one expression of the IR") from None
    if not isinstance(made, Expr):
        why = f"gives {type(made).__name__}"
        raise refused(mine, plugin, why, "one expression of the IR")
    return simplify(made)


def _read(meaning: Expr) -> set[str]:
    return {load.buffer.name for load in find(meaning, Load)}


def _refusal(mine: UserIntrinsic) -> str:
    """Why LLVM makes no machine code of it, alone or of a vector; empty if it does."""
    if not _LLVM.fullmatch(mine.llvm) or not all(map(_LITERAL.fullmatch, mine.literals)):
        return f"names {' '.join([mine.llvm, *mine.literals])}, which is nothing of LLVM's"
    kind = VALUE_TYPES[mine.dtype]
    suffix = "f32" if mine.dtype.is_float else kind
    names = [f"%v{at}" for at in range(len(mine.operands))]
    for shape, called in ((kind, suffix), (f"<{_LANES} x {kind}>", f"v{_LANES}{suffix}")):
        given = ", ".join(f"{shape} {name}" for name in names)
        body = f"%r = {mine.instruction(shape, called, names)}\n  ret {shape} %r"
        text = f"define {shape} @f({given}) {{\n  {body}\n}}\n"
        try:
            code = object_code(text, this_host(), fast_code=False)
        except RuntimeError as error:
            return " ".join(f"is refused: {error}".split())
        if strangers := undefined_symbols(code):
            return f"needs {', '.join(sorted(strangers))}, which kernels have not"
    return ""


def refused(mine: CustomIntrinsic, plugin: PluginText, why: str, hint: str) -> SettingsError:
    """The error that an intrinsic of a file is."""
    return SettingsError(f"--plugin: {plugin.named}: the intrinsic {mine.name} {why}", hint)
