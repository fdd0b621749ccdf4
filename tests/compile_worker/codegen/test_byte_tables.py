"""Bytes by tables of 256 entries, where an instruction looks them up and where none does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kit.kernels.nests import SIM
from kit.kernels.runtime_double import call, runtime_double
from kit.objects.hosts import X86
from tilefarm.dtype import DType
from tilefarm.target import Host, Target

from compile_worker.emit import kernel_object, kernel_text
from compile_worker.ir.expr import INDEX, Buffer, Cast, Const, Expr, Lt, Select, Var
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import For, LoopKind, Store
from compile_worker.isa import isa_of
from compile_worker.passes.nests import of_kind
from compile_worker.passes.vectorize_loops import vectorize_loops

I = Var("i")  # noqa: E741
INSTRUCTION = "vpermi2var.qi.512"
FULL = X86["avx512vnni"][0]
VBMI = replace(SIM, host=replace(FULL, features=f"{FULL.features},+avx512vbmi"))
PLAIN = replace(SIM, host=X86["avx2"][0])


def lookups(dtype: DType, held: DType = DType.INT8, extent: int = 300) -> Func:
    """As long as some vectors of every width and a rest."""
    x, table = Buffer("x", (extent,), dtype), Buffer("table", (256,), held)
    out = Buffer("out", (extent,), held)
    store = Store(out, (I,), table[entry(x[I])])
    return Func("lookups", (x, table, out), For(I, extent, store))


def entry(byte: Expr) -> Expr:
    return Cast(INDEX, byte) + 128 if byte.dtype is DType.INT8 else Cast(INDEX, byte)


def widths(func: Func, target: Target) -> list[int]:
    loops = of_kind(vectorize_loops(func, target).body, For)
    return [each.extent for each in loops if each.kind is LoopKind.VECTORIZED]


def check(func: Func, target: Target, folder: Path) -> None:
    """The kernel's answer is the interpreter's for every byte."""
    lowered = vectorize_loops(func, target)
    kernel = folder / "kernel.so"
    kernel.write_bytes(kernel_object(lowered, "entry", target))
    x, table, out = func.params
    arrays = {
        "x": np.arange(x.shape[0], dtype=np.uint8).view(x.dtype.value),
        "table": np.random.default_rng(5).integers(0, 256, 256, np.uint8).view(table.dtype.value),
    }
    found = np.zeros(out.shape, out.dtype.value)
    assert call(runtime_double(folder), kernel, "entry", [*arrays.values(), found]) == 0
    np.testing.assert_array_equal(found, interpret(func, arrays)["out"])


@pytest.mark.parametrize("held", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize("target", [VBMI, PLAIN], ids=["vbmi", "avx2"])
def test_every_byte_has_its_entry(
    target: Target, dtype: DType, held: DType, tmp_path: Path
) -> None:
    func = lookups(dtype, held)
    text = kernel_text(vectorize_loops(func, target), "entry", target)
    assert (INSTRUCTION in text) == (target is VBMI)
    if not has_flag("avx512vbmi" if target is VBMI else "avx2"):
        pytest.skip("this processor has no such instruction")
    check(func, target, tmp_path)


def test_lanes_that_are_not_live_take_no_entry(tmp_path: Path) -> None:
    """A condition that data decide."""
    func = lookups(DType.UINT8)
    x, table, out = func.params
    is_small = Lt(Cast(DType.INT32, x[I]), Const(100, DType.INT32))
    value = Select(is_small, table[entry(x[I])], Const(7, DType.INT8))
    chosen = Func("chosen", func.params, For(I, out.shape[0], Store(out, (I,), value)))
    assert INSTRUCTION in kernel_text(vectorize_loops(chosen, VBMI), "entry", VBMI)
    if not has_flag("avx512vbmi"):
        pytest.skip("this processor has no such instruction")
    check(chosen, VBMI, tmp_path)


def test_a_table_of_other_entries_is_read_one_by_one() -> None:
    floats = lookups(DType.UINT8, DType.FLOAT32)
    assert INSTRUCTION not in kernel_text(vectorize_loops(floats, VBMI), "entry", VBMI)
    x, _, out = lookups(DType.INT8).params
    moved = Buffer("table", (512,), DType.INT8)
    store = Store(out, (I,), moved[entry(x[I])])
    func = Func("moved", (x, moved, out), For(I, out.shape[0], store))
    assert INSTRUCTION not in kernel_text(vectorize_loops(func, VBMI), "entry", VBMI)


def test_bytes_fill_a_cache_line() -> None:
    """Lookups where there is an instruction, and copies everywhere; the rest in short vectors."""
    assert widths(lookups(DType.UINT8), VBMI) == [64, 16, 12]
    assert widths(lookups(DType.UINT8), PLAIN) == [16, 12]
    x, _, out = lookups(DType.INT8).params
    copies = Func("copies", (x, out), For(I, 130, Store(out, (I,), x[I + 5])))
    assert widths(copies, PLAIN) == [64]
    strided = Func("strided", (x, out), For(I, 130, Store(out, (I,), x[I * 2])))
    assert widths(strided, PLAIN) == [16]
    summed = Cast(DType.INT8, Cast(DType.INT32, x[I]) + 1)
    wide = Func("wide", (x, out), For(I, 130, Store(out, (I,), summed)))
    assert widths(wide, PLAIN) == [16]


def test_processors_that_have_the_instruction() -> None:
    names = ("cannonlake", "icelake-server", "znver4", "sapphirerapids")
    assert all(isa_of(Host(cpu=name)).has_byte_tables for name in names)
    without = ("cascadelake", "cooperlake", "skylake-avx512", "x86-64-v4", "znver3")
    assert not any(isa_of(Host(cpu=name)).has_byte_tables for name in without)
    assert not isa_of(Host(cpu="znver4", features="-avx512vbmi")).has_byte_tables


def has_flag(name: str) -> bool:
    """Whether this machine has all of AVX-512 that VBMI stands for, or AVX2."""
    return name in Path("/proc/cpuinfo").read_text().split()
