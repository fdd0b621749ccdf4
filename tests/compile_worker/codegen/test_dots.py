"""Dot products by every vector unit that this machine has, against the interpreter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kit.kernels.nests import SIM
from kit.kernels.runtime_double import call, runtime_double
from kit.objects.hosts import ARM, X86, runs_here
from tilefarm.dtype import DType
from tilefarm.target import Host

from compile_worker.codegen.dots import INSTRUCTIONS
from compile_worker.emit import kernel_object, kernel_text
from compile_worker.ir.expr import Buffer, Cast, Var
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import For, LoopKind, Store
from compile_worker.isa import isa_of
from compile_worker.passes.dot_products import Dot, dot_of
from compile_worker.passes.vectorize_loops import vectorize_loops

O, I, P = Var("o"), Var("i"), Var("p")  # noqa: E741
ACC = Buffer("acc", (48,), DType.INT32)


def products(
    count: int, *, lanes: int = 16, pixels: int = 3, gap: int = 0, dtype: DType = DType.INT8
) -> Func:
    """Sums for some pixels: rows of weights are `gap` apart beyond their own bytes."""
    data = Buffer("data", (pixels * count,), dtype)
    rows = Buffer("rows", (lanes * (count + gap),), DType.INT8)
    acc = Buffer("acc", (pixels * lanes,), DType.INT32)
    at = P * lanes + O
    product = Cast(DType.INT32, data[P * count + I]) * Cast(
        DType.INT32, rows[O * (count + gap) + I]
    )
    inner = For(I, count, For(O, lanes, Store(acc, (at,), acc[at] + product)))
    return Func("products", (data, rows, acc), For(P, pixels, inner))


def own_products(dtype: DType, lanes: int = 16) -> Func:
    """Sums of four products of each lane's own data, as a depthwise layer has them."""
    data = Buffer("data", (lanes * 4,), dtype)
    rows = Buffer("rows", (lanes * 4,), DType.INT8)
    acc = Buffer("acc", (lanes,), DType.INT32)
    product = Cast(DType.INT32, data[O * 4 + I]) * Cast(DType.INT32, rows[O * 4 + I])
    inner = For(I, 4, Store(acc, (O,), acc[O] + product))
    return Func("own_products", (data, rows, acc), For(O, lanes, inner, LoopKind.VECTORIZED))


def apart_products(dtype: DType, between: int) -> Func:
    """Sums of four products of each lane's own data, which pixels have side by side."""
    lanes = 16
    data = Buffer("data", (3 * between + lanes,), dtype)
    rows = Buffer("rows", (lanes * 4,), DType.INT8)
    acc = Buffer("acc", (lanes,), DType.INT32)
    product = Cast(DType.INT32, data[O + I * between]) * Cast(DType.INT32, rows[O * 4 + I])
    inner = For(I, 4, Store(acc, (O,), acc[O] + product))
    return Func("apart_products", (data, rows, acc), For(O, lanes, inner, LoopKind.VECTORIZED))


def pairs(lanes: int = 16, pixels: int = 3, dtype: DType = DType.INT8) -> Func:
    """Sums of two products of int16 data and int8 or int16 rows."""
    data = Buffer("data", (pixels * 2,), DType.INT16)
    rows = Buffer("rows", (lanes * 2,), dtype)
    acc = Buffer("acc", (pixels * lanes,), DType.INT32)
    at = P * lanes + O
    product = Cast(DType.INT32, data[P * 2 + I]) * Cast(DType.INT32, rows[O * 2 + I])
    inner = For(I, 2, For(O, lanes, Store(acc, (at,), acc[at] + product)))
    return Func("pairs", (data, rows, acc), For(P, pixels, inner))


def own_pairs(lanes: int = 16, pixels: int = 3) -> Func:
    """Sums of two products of int16 of each lane's own data."""
    data = Buffer("data", (pixels * lanes * 2,), DType.INT16)
    rows = Buffer("rows", (lanes * 2,), DType.INT16)
    acc = Buffer("acc", (pixels * lanes,), DType.INT32)
    at = P * lanes + O
    product = Cast(DType.INT32, data[at * 2 + I]) * Cast(DType.INT32, rows[O * 2 + I])
    inner = For(I, 2, For(O, lanes, Store(acc, (at,), acc[at] + product)))
    return Func("own_pairs", (data, rows, acc), For(P, pixels, inner))


def arrays_of(func: Func) -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(3)
    found: dict[str, npt.NDArray[Any]] = {
        p.name: rng.choice(np.array([-128, -127, -1, 0, 77, 127], np.int8), p.shape)
        for p in func.params[:2]
    }
    for array in found.values():
        array[: len(array) // 3] = -128  # the sum of a pair is 2 * 128 * 128
    if func.params[0].dtype is DType.UINT8:
        found["data"] = found["data"].view(np.uint8)
        found["data"][: len(found["data"]) // 4] = 255
    return found


@pytest.mark.parametrize("count", [4, 8, 16, 32])
@pytest.mark.parametrize("name", X86)
def test_sums_are_those_of_the_interpreter(name: str, count: int, tmp_path: Path) -> None:
    if not runs_here(name):
        pytest.skip(f"this processor has no {name}")
    target = replace(SIM, host=X86[name][0])
    for gap in (0, 4):
        func = vectorize_loops(products(count, gap=gap), target)
        kernel = tmp_path / f"kernel{gap}.so"
        kernel.write_bytes(kernel_object(func, "entry", target))
        arrays = arrays_of(func)
        found = np.full(48, 7, np.int32)
        assert call(runtime_double(tmp_path), kernel, "entry", [*arrays.values(), found]) == 0
        start = np.zeros(48, np.int32)
        np.testing.assert_array_equal(found - 7, interpret(func, {**arrays, "acc": start})["acc"])


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize("name", X86)
def test_signs_and_data_of_each_lane(name: str, dtype: DType, tmp_path: Path) -> None:
    if not runs_here(name):
        pytest.skip(f"this processor has no {name}")
    target = replace(SIM, host=X86[name][0])
    apart = [apart_products(dtype, between) for between in (16, 32, 17)]
    for at, func in enumerate([own_products(dtype), products(8, pixels=1, dtype=dtype), *apart]):
        lowered = vectorize_loops(func, target)
        assert INSTRUCTIONS[isa_of(target.host).dot] in kernel_text(lowered, "k", target)
        kernel = tmp_path / f"kernel{at}.so"
        kernel.write_bytes(kernel_object(lowered, "entry", target))
        arrays, found = arrays_of(func), np.full(16, 7, np.int32)
        assert call(runtime_double(tmp_path), kernel, "entry", [*arrays.values(), found]) == 0
        wanted = interpret(func, {**arrays, "acc": np.full(16, 7, np.int32)})["acc"]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("made", [pairs(), pairs(dtype=DType.INT16), own_pairs()])
@pytest.mark.parametrize("name", X86)
def test_pairs_of_int16(name: str, made: Func, tmp_path: Path) -> None:
    if not runs_here(name):
        pytest.skip(f"this processor has no {name}")
    target = replace(SIM, host=X86[name][0])
    func = vectorize_loops(made, target)
    (tmp_path / "kernel.so").write_bytes(kernel_object(func, "entry", target))
    data, rows = (np.zeros(each.shape, each.dtype.value) for each in made.params[:2])
    ends = [-128, -128, 127, 3] if rows.dtype == np.int8 else [-255, -255, 255, -32768]
    arrays: dict[str, npt.NDArray[Any]] = {
        "data": np.resize(np.array([255, 255, -128, 0, 32767, -32768], np.int16), data.shape),
        "rows": np.resize(np.array([*ends, 0, 127], rows.dtype), rows.shape),
    }
    found = np.full(48, 7, np.int32)
    kernel = tmp_path / "kernel.so"
    assert call(runtime_double(tmp_path), kernel, "entry", [*arrays.values(), found]) == 0
    wanted = interpret(func, {**arrays, "acc": np.full(48, 7, np.int32)})["acc"]
    np.testing.assert_array_equal(found, wanted)
    assert INSTRUCTIONS[isa_of(target.host).pair] in kernel_text(func, "entry", target)


@pytest.mark.parametrize(
    ("host", "instruction"),
    [
        *((host, isa_of(host).dot) for host, _ in X86.values()),
        *((host, isa_of(host).dot) for host in ARM.values()),
    ],
    ids=[*X86, *ARM],
)
def test_every_host_uses_its_instruction(host: Host, instruction: str) -> None:
    target = replace(SIM, host=host)
    func = vectorize_loops(products(16, dtype=DType.UINT8), target)
    assert instruction
    assert INSTRUCTIONS[instruction] in kernel_text(func, "entry", target)


def test_i8mm_takes_data_of_either_sign_as_they_are() -> None:
    target = replace(SIM, host=ARM["aarch64i8mm"])
    for dtype, instruction in ((DType.UINT8, "usdot"), (DType.INT8, "sdot")):
        func = vectorize_loops(products(16, dtype=dtype), target)
        text = kernel_text(func, "entry", target)
        assert text.count(f"@{INSTRUCTIONS[instruction]}(") > 0
        assert "xor" not in text
    assert isa_of(target.host).data is None
    assert isa_of(replace(target.host, features="-i8mm")).dot == "sdot"


def test_hosts_and_their_vector_units() -> None:
    dots = [isa_of(host).dot for host, _ in X86.values()]
    assert dots == ["pmaddwd128", "pmaddwd256", "vpdpbusd256", "pmaddwd512", "vpdpbusd512"]
    assert [isa_of(host).dot for host in ARM.values()] == [
        "saddlp",
        "sdot",
        "usdot",
        "vpaddl",
    ]
    assert [isa_of(host).together for host, _ in X86.values()] == [2, 2, 4, 2, 4]
    assert [isa_of(host).depth for host, _ in X86.values()] == [2, 2, 4, 2, 4]
    assert [isa_of(host).depth for host in ARM.values()] == [4, 4, 8, 4]
    assert [isa_of(host).together for host in ARM.values()] == [4, 4, 4, 4]
    assert isa_of(Host(cpu="znver5", features="-avx512vnni")).dot == "pmaddwd512"
    plain = isa_of(Host(triple="riscv64-unknown-linux", cpu="generic-rv64"))
    assert (plain.dot, plain.together) == ("", 4)


def test_blocks_narrower_than_a_register_take_the_plain_way() -> None:
    wide = replace(SIM, host=X86["avx512vnni"][0])
    assert "vpdpbusd" not in kernel_text(vectorize_loops(products(8, lanes=8), wide), "entry", wide)


def vector_loop(func: Func) -> For:
    """The loop inside of the lanes'."""
    assert isinstance(func.body, For)
    assert isinstance(func.body.body, For)
    return func.body.body


def pair_of(distance: int) -> Dot | None:
    """Two products of int16 by rows that are some elements apart."""
    data, rows = Buffer("data", (2,), DType.INT16), Buffer("rows", (64,), DType.INT8)
    product = Cast(DType.INT32, data[I]) * Cast(DType.INT32, rows[O * distance + I])
    return dot_of(For(I, 2, Store(ACC, (O,), ACC[O] + product)), O)


def test_other_sums_are_no_dot_products() -> None:
    inner = products(16).body
    assert isinstance(inner, For)
    over = inner.body
    assert isinstance(over, For)
    lanes = over.body
    assert isinstance(lanes, For)
    assert dot_of(For(I, 16, lanes.body), O) is not None
    assert dot_of(For(I, 15, lanes.body), O) is None
    assert dot_of(For(O, 16, lanes.body), I) is None
    assert pair_of(2) is not None
    assert dot_of(vector_loop(apart_products(DType.INT8, 16)), O) is not None
    assert dot_of(vector_loop(apart_products(DType.UINT8, 1)), O) is None
    assert pair_of(4) is None
    other = Store(ACC, (O,), ACC[O] + ACC[I] * ACC[O])
    assert dot_of(For(I, 16, other), O) is None
    assert dot_of(For(I, 16, lanes.body, LoopKind.SERIAL), P) is None
