"""An intrinsic of a user's own that is a nest of loops: a script of what it sums, and instructions.

    @custom_intrinsic(
        '''
        %products = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %a, <16 x i16> %b)
        %sums = add <8 x i32> %out, %products
        ret <8 x i32> %sums
        ''',
        needs="avx2",
    )
    def pairs(a: "int16[8, 2]", b: "int16[8, 2]", out: "int32[8]"):
        for i in range(8):
            for k in range(2):
                out[i] += int32(a[i, k]) * int32(b[i, k])

The script is parsed and never run. It becomes a rule of the spaces of scripts, Tensorize-pairs, and
a pass that sees to it that what a schedule has handed to it still is it when all others are done.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Sequence
from typing import Final

from tilefarm.artifact import PluginText
from tilefarm.errors import TilefarmError
from tilefarm.target import Target

from compile_worker.codegen.elf import undefined_symbols
from compile_worker.codegen.hosts import this_host
from compile_worker.codegen.machine import object_code, require_text
from compile_worker.codegen.tile_calls import tile_function
from compile_worker.ir.annotations import INTRINSIC
from compile_worker.ir.expr import Buffer, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import Block, For, Store
from compile_worker.ir.tile_intrinsics import TileIntrinsic, call_of, know_tile_intrinsic
from compile_worker.ir.visit import find
from compile_worker.plugins.custom_intrinsic import AFTER, DATA_TYPES, CustomIntrinsic, refused
from compile_worker.plugins.custom_pass import CustomPass
from compile_worker.te.script import script
from compile_worker.te.tensor import Tensor

_MOST_LANES: Final = 1024
"""Of an operand: a tile of the largest matrix units; LLVM takes seconds for many more."""

_TILE: Final = re.compile(r"(\w+) *\[(\d+(?: *, *\d+)*)\]")
_MEMORY: Final = re.compile(r"\b(asm|ptr)\b|[{}]")
_OF_A_PROCESSOR: Final = re.compile(r"@llvm\.(x86|aarch64|arm)\.")

_HINT: Final = "loops around one sum, as `for i in range(8): for k in range(2): out[i] += a[i, k]`"


def tile_of(mine: CustomIntrinsic, plugin: PluginText) -> TileIntrinsic:
    """The intrinsic, once it is known what it means and that its instructions are LLVM's.

    Raises:
        SettingsError: its function is no such script, or LLVM does not take the text.
    """
    *inputs, out = _parameters(mine, plugin)
    try:
        work = script(mine.meaning)([*map(Tensor, inputs)], [out])
    except TilefarmError as error:
        raise refused(mine, plugin, f"is no script: {_line(error.what)}", error.hint) from None
    nest, body = perfect_nest(work.body)
    loops = [(loop.var, loop.extent) for loop in nest]
    store = simplify(body.body) if isinstance(body, Block) and body.init is None else None
    if work.scratch or not isinstance(store, Store) or not isinstance(body, Block):
        raise refused(mine, plugin, "is no loops around one sum", _HINT)
    found = TileIntrinsic(
        f"{mine.name}_{plugin.digest.short}",
        tuple(loops),
        body.reductions,
        store,
        _operands(mine, plugin, (*inputs, out), store, loops),
        mine.llvm,
        mine.needs,
    )
    _require_instructions(mine, plugin, found)
    return found


def tile_pass(found: TileIntrinsic, mine: CustomIntrinsic) -> CustomPass:
    """The pass that every kernel is lowered with; from now on the intrinsic is known here."""
    know_tile_intrinsic(found)

    def run(func: Func, target: Target) -> Func:
        del target
        marked = [loop for loop in find(func.body, For) if INTRINSIC.of(loop) == found.name]
        inner = {loop for each in marked for loop in find(each.body, For)}
        for loop in marked:
            if loop not in inner and call_of(found, loop) is None:
                why = "is not what it does any more: a pass before has changed it"
                raise ValueError(f"the nest of the loop {loop.var.name} {why}")
        return func

    return CustomPass(mine.name, AFTER, run)


def _parameters(mine: CustomIntrinsic, plugin: PluginText) -> list[Buffer]:
    """The operands and the result as their types say, the result in memory of the host."""
    hint = 'as a: "int16[8, 2]", of a type that data have; for an expression say of='
    made = []
    for name, each in inspect.signature(mine.meaning).parameters.items():
        said = _TILE.fullmatch(each.annotation) if isinstance(each.annotation, str) else None
        kind = next((dtype for dtype in DATA_TYPES if said and dtype.value == said[1]), None)
        if said is None or kind is None:
            raise refused(mine, plugin, f"does not say what {name} is", hint)
        made.append(Buffer(name, tuple(map(int, said[2].split(","))), kind))
    if len(made) < 2:
        raise refused(mine, plugin, "has no operand and result", hint)
    return made


def _operands(
    mine: CustomIntrinsic,
    plugin: PluginText,
    parameters: Sequence[Buffer],
    store: Store,
    loops: Sequence[tuple[Var, int]],
) -> tuple[Load, ...]:
    """What the sum reads of each parameter, at its loops' variables."""
    extents, read = dict(loops), tuple(dict.fromkeys(find(store.value, Load)))
    if one := next((var.name for var, extent in loops if extent < 2), None):
        raise refused(mine, plugin, f"has a loop {one} of less than two iterations", _HINT)
    found = []
    for buffer in parameters:
        loads = [load for load in read if load.buffer is buffer]
        if buffer is store.buffer and loads != [Load(buffer, store.index)]:
            raise refused(mine, plugin, f"does not add to {buffer.name}", _HINT)
        if len(loads) != 1:
            raise refused(
                mine, plugin, f"reads {buffer.name} at {len(loads)} places, not one", _HINT
            )
        (load,) = loads
        own = [extents.get(at) if isinstance(at, Var) else None for at in load.index]
        if tuple(own) != buffer.shape or len({*load.index}) < len(own):
            why = f"reads {buffer.name} of {list(buffer.shape)} otherwise than by whole loops"
            raise refused(mine, plugin, why, "loops as long as its axes, each once")
        if math.prod(buffer.shape) > _MOST_LANES:
            why = f"has {math.prod(buffer.shape)} lanes of {buffer.name}"
            raise refused(mine, plugin, why, f"at most {_MOST_LANES}")
        found.append(load)
    return tuple(found)


def _require_instructions(mine: CustomIntrinsic, plugin: PluginText, found: TileIntrinsic) -> None:
    hint = "the body of a function of LLVM's: operands are vectors, %a for a, and `ret` the result"
    if (word := _MEMORY.search(mine.llvm)) is not None:
        raise refused(mine, plugin, f"says {word[0]} in its instructions", f"{hint}; no memory")
    if _OF_A_PROCESSOR.search(mine.llvm) and not mine.needs:
        why = "has instructions of one processor, and does not say of which"
        raise refused(mine, plugin, why, 'needs="avx2", in the words of /proc/cpuinfo')
    try:
        text = tile_function(found, "f", "").replace("internal ", "")
        require_text(text)
        # LLVM dies of another processor's instructions, and takes all others anywhere.
        is_plain = not _OF_A_PROCESSOR.search(mine.llvm)
        code = object_code(text, this_host(), fast_code=False) if is_plain else None
    except RuntimeError as error:
        raise refused(mine, plugin, f"is refused by LLVM: {_line(error)}", hint) from None
    if code is not None and (strangers := undefined_symbols(code)):
        why = f"needs {', '.join(sorted(strangers))}, which kernels have not"
        raise refused(mine, plugin, why, "instructions, and no functions of a library")


def _line(error: object) -> str:
    return " ".join(str(error).split())
