"""Every point of the processor's spaces compiles and is right, on every vector unit."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kit.golden import Golden
from kit.kernels import numpy_operators, qlinear, qlinear_elements
from kit.kernels.nests import inputs_of
from kit.kernels.runtime_double import call, outputs_like, runtime_double
from kit.objects.hosts import ARM, X86, runs_here
from tilefarm.dtype import DType
from tilefarm.processors import X86_64, processor, with_threads
from tilefarm.space import Point, violations
from tilefarm.target import Host
from tilefarm.workload import Workload

from compile_worker.codegen.parallel import parallel_loop
from compile_worker.emit import kernel_object, kernel_text
from compile_worker.generated import Generated
from compile_worker.ir.expr import Var
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import Alloc, If
from compile_worker.ir.visit import find
from compile_worker.isa import isa_of
from compile_worker.lowering import lower
from compile_worker.machines.cpu.space import cpu_space
from compile_worker.machines.cpu.space.windows import tall_tiles, tile_sizes, tiles
from compile_worker.passes.nests import of_kind
from compile_worker.schedule import replay
from compile_worker.schedule.loops import tile_step
from compile_worker.te import nest_of

CPU = processor("cpu", Host(triple=X86_64, cpu="x86-64-v4"))
VNNI = replace(CPU, host=X86["avx512vnni"][0])
U8, I8 = DType.UINT8, DType.INT8
MATMULS = {
    **{
        name: work
        for name, work in qlinear_elements.EXAMPLES.items()
        if work.operator == "qlinear_matmul"
    },
    "qlinear_matmul_tall": qlinear_elements.matmul((U8, (1, 6, 21)), (I8, (1, 6, 64))),
    "qlinear_matmul_row": qlinear_elements.matmul((I8, (2, 12, 1)), (U8, (2, 12, 48))),
}
SPACED = {**qlinear.EXAMPLES, **MATMULS}
WORKS = {
    **SPACED,
    "dense_rows": qlinear.convolution(2, 4, (1, 12), (1, 1), pad=(0, 0, 0, 0)),
    "dense_rows_pairs": qlinear.with_addend(
        qlinear.convolution(4, 3, (1, 10), (1, 1), pad=(0, 0, 0, 0), together=2)
    ),
    "prime": qlinear.convolution(2, 3, (5, 11), (3, 1), pad=(1, 0, 1, 0)),
    "tall": qlinear.convolution(1, 4, (12, 6), (1, 1), (2, 2), (0, 0, 0, 0)),
    "large_kernel": qlinear.depthwise(1, (7, 9), (7, 7), pad=(3, 3, 3, 3)),
    "filtered": qlinear.winograd(2, 4, (8, 8)),
    "dilated_depthwise": qlinear.depthwise(1, (8, 8), pad=(2, 2, 2, 2), dilation=(2, 2)),
}
OVERLAPPING = {
    "odd_rows": qlinear.convolution(1, 2, (3, 13)),
    "odd_rows_strided": qlinear.convolution(2, 1, (4, 25), (3, 3), (2, 2)),
    "odd_rows_pairs": qlinear.convolution(1, 2, (2, 13), pad=(1, 2, 1, 0), together=2),
    "odd_rows_depthwise": qlinear.depthwise(1, (4, 13)),
    "odd_rows_dense": qlinear.convolution(1, 2, (1, 13), (1, 1), pad=(0, 0, 0, 0)),
    "odd_rows_phases": qlinear.transposed(size=(3, 13)),
}
WORKS.update(OVERLAPPING)
ZEROS_AROUND = {
    "zeros_around": qlinear.convolution(2, 4, (7, 7)),
    "zeros_around_dilated": qlinear.convolution(1, 2, (9, 8), pad=(2, 4, 1, 3), dilation=(2, 3)),
    "zeros_around_strided": qlinear.convolution(
        1, 2, (6, 8), (3, 5), (2, 2), (1, 2, 1, 2), dtype=DType.INT8
    ),
    "zeros_around_groups": qlinear.convolution(4, 4, (5, 6), groups=2),
    "zeros_around_phases": qlinear.transposed(),
}
WORKS.update({name: qlinear.with_zeros_around(work) for name, work in ZEROS_AROUND.items()})
IN_REGISTERS = 2
"""Where a depthwise layer makes its quads."""
HOSTS = {**{name: host for name, (host, _) in X86.items()}, **ARM}
Choose = Callable[[Generated], Iterable[Point]]
"""Which points of a space are tried."""


def space_of(work: Workload, host: Host = VNNI.host) -> Generated:
    made = cpu_space(work, replace(CPU, host=host))
    assert made is not None
    return made


def points(made: Generated, count: int) -> Iterator[Point]:
    """The default and other valid points, the same in every run."""
    yield made.default
    rng, seen = random.Random(1), {tuple(made.default.items())}
    for _ in range(50 * count):
        point = made.completed({v.name: rng.choice(v.domain) for v in made.space.tunables})
        if len(seen) <= count and tuple(point.items()) not in seen:
            seen.add(tuple(point.items()))
            if not violations(made.space, point):
                yield point


def default_point(made: Generated) -> list[Point]:
    """As it is chosen where nothing was measured."""
    return [made.default]


def another_point(made: Generated) -> list[Point]:
    """Of those that the default is not."""
    return [*points(made, 1)][1:]


def many_points(made: Generated) -> Iterator[Point]:
    """The default and what chance chooses."""
    return points(made, 12)


def covering(made: Generated) -> Iterator[Point]:
    """The default and few other valid points that have every choice of many."""
    left = list(points(made, 60))
    seen: set[tuple[str, int]] = set()
    point = left[0]
    while new := _choices(made, point) - seen:
        yield point
        seen |= new
        point = max(left, key=lambda each: len(_choices(made, each) - seen))


def _choices(made: Generated, point: Point) -> set[tuple[str, int]]:
    return {(v.name, point[v.name]) for v in made.space.tunables}


def compare(work: Workload, host: str, folder: Path, chosen: Choose) -> None:
    """Machine code of some points of a space against numpy."""
    if not runs_here(host):
        pytest.skip(f"this processor has no {host}")
    target = replace(CPU, host=HOSTS[host])
    made, arrays = space_of(work, target.host), inputs_of(work)
    wanted = numpy_operators.run(work, arrays)
    for number, point in enumerate(chosen(made)):
        func = lower(replay(made.trace(point), nest_of(work, target), target), target)
        kernel = folder / f"kernel{number}.so"
        kernel.write_bytes(kernel_object(func, "entry", target))
        out = outputs_like({"out": (wanted.shape, wanted.dtype)})["out"]
        assert call(runtime_double(folder), kernel, "entry", [*arrays.values(), out]) == 0
        np.testing.assert_array_equal(out, wanted, err_msg=f"{host} {point}")


ELSEWHERE = dict(zip(WORKS, itertools.cycle(("avx2", "avx512vnni")), strict=False))
"""Where another point is tried in place of the default; in the long suite both are, everywhere."""
ON_SSE = (
    *("qlinear_conv2d", "qlinear_conv2d_signed", "qlinear_conv2d_pairs", "qlinear_conv2d_wide"),
    *("qlinear_conv2d_transpose", "qlinear_winograd2d", "qlinear_matmul"),
    *("qlinear_depthwise2d", "qlinear_depthwise2d_pairs"),
)
"""One of each form of an operator; in the long suite all are tried on the narrowest vectors too."""


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("host", ["avx2", "avx512vnni"])
def test_the_default_or_another_point_is_right(name: str, host: str, tmp_path: Path) -> None:
    another = host == ELSEWHERE[name]
    compare(WORKS[name], host, tmp_path, another_point if another else default_point)


@pytest.mark.parametrize("name", ON_SSE)
def test_every_form_is_right_on_the_narrowest_vectors(name: str, tmp_path: Path) -> None:
    compare(WORKS[name], "sse", tmp_path, default_point)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("host", X86)
def test_points_are_right_on_every_vector_unit(name: str, host: str, tmp_path: Path) -> None:
    """Every choice on each; on one of them, many points, in which choices meet."""
    compare(WORKS[name], host, tmp_path, many_points if host == ELSEWHERE[name] else covering)


@pytest.mark.parametrize("name", SPACED)
@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["another point", "both"]
)
def test_lowering_keeps_the_meaning(name: str, every: bool) -> None:
    work = SPACED[name]
    arrays, made = inputs_of(work), space_of(work)
    tried = list(points(made, 1))
    for point in tried if every else tried[-1:]:  # machine code of the default is compared above
        func = lower(replay(made.trace(point), nest_of(work, VNNI), VNNI), VNNI, check=True)
        flat = {each: array.reshape(-1) for each, array in arrays.items()}
        out = np.zeros(np.prod(work.outputs[0].shape), work.outputs[0].dtype.value)
        found = interpret(func, {**flat, "out": out})["out"]
        np.testing.assert_array_equal(found, numpy_operators.run(work, arrays).reshape(-1))


@pytest.mark.parametrize("host", [name for name in HOSTS if name != "armv7"])
def test_all_sums_fit_the_registers(host: str) -> None:
    work = qlinear.convolution(4, 16, (14, 28), pad=(1, 1, 1, 1))
    made = space_of(work, HOSTS[host])
    isa = isa_of(HOSTS[host])
    for point in points(made, 50):
        assert point["pixels"] * point["blocks"] * 16 <= isa.registers * isa.lanes


def test_the_dot_product_takes_unsigned_data_as_they_are() -> None:
    made = space_of(work := WORKS["qlinear_conv2d"])
    func = lower(replay(made.trace(made.default), nest_of(work, VNNI), VNNI), VNNI)
    text = kernel_text(func, "entry", VNNI)
    assert "vpdpbusd" in text
    assert "xor" not in text


SHARED = {
    "convolution": qlinear.convolution(4, 16, (14, 28), pad=(1, 1, 1, 1)),
    "one_row": qlinear.convolution(8, 32, (1, 28), (1, 1), pad=(0, 0, 0, 0)),
    "one_odd_row": qlinear.convolution(8, 32, (1, 37), (1, 1), pad=(0, 0, 0, 0)),
    "depthwise": qlinear.depthwise(8, (28, 28), pad=(1, 1, 1, 1)),
}


@pytest.mark.parametrize("name", SHARED)
def test_threads_share_what_is_outermost_and_get_a_tile_each(name: str) -> None:
    target = with_threads(replace(VNNI, name="threads"), 2)
    made = cpu_space(work := SHARED[name], target)
    assert made is not None
    assert made.default["shared"] == 1
    for point in points(made, 6):
        func = lower(replay(made.trace(point), nest_of(work, target), target), target)
        loop = parallel_loop(func)
        assert (loop is not None) == bool(point["shared"])
        assert loop is None or loop.extent >= 2


def test_images_are_shared_first() -> None:
    one = SHARED["convolution"]
    images = [replace(t, shape=(4, *t.shape[1:])) for t in (one.inputs[0], one.outputs[0])]
    work = replace(one, inputs=(images[0], *one.inputs[1:]), outputs=(images[1],))
    target = with_threads(VNNI, 2)
    made = cpu_space(work, target)
    assert made is not None
    func = lower(replay(made.trace(made.default), nest_of(work, target), target), target)
    loop = parallel_loop(func)
    assert loop is not None
    assert loop.extent == 4


def test_one_thread_and_tiny_kernels_have_nothing_to_share() -> None:
    tiny, target = WORKS["prime"], with_threads(VNNI, 2)
    for work, its in ((SHARED["convolution"], VNNI), (tiny, target)):
        made = cpu_space(work, its)
        assert made is not None
        assert "shared" not in [each.name for each in made.space.tunables]
        assert made.default["shared"] == 0


def test_what_is_too_large_for_the_stack_is_padded_step_by_step() -> None:
    wide = space_of(qlinear.convolution(64, 4, (56, 56)))
    assert wide.default["padding"] == 1
    assert space_of(qlinear.convolution(4, 4, (56, 56))).default["padding"] == 0
    long_rows = space_of(qlinear.depthwise(1, (3, 4000)))
    assert long_rows.default["place"] == 1


def test_quads_of_taps_are_woven_in_registers_where_one_instruction_does() -> None:
    work = SHARED["depthwise"]
    vbmi = Host(triple=X86_64, cpu="znver4")
    made = space_of(work, vbmi)
    assert made.default["place"] == IN_REGISTERS
    target = replace(CPU, host=vbmi)
    func = lower(replay(made.trace(made.default), nest_of(work, target), target), target)
    text = kernel_text(func, "entry", target)
    assert "vpdpbusd" in text
    assert "shufflevector <64 x i8>" in text
    assert space_of(work).default["place"] != IN_REGISTERS
    pairs = space_of(qlinear.depthwise(8, (28, 28), together=2), vbmi)
    assert IN_REGISTERS not in next(v for v in pairs.space.tunables if v.name == "place").domain


@pytest.mark.parametrize("name", OVERLAPPING)
def test_rows_that_nothing_divides_have_tiles_that_overlap(name: str) -> None:
    made = space_of(WORKS[name], X86["avx2"][0])
    assert made.default["pixels"] in (4, 5, 6)
    assert "overlap" in {step.primitive for step in made.trace(made.default).steps}


@pytest.mark.parametrize("extent", range(1, 60))
def test_tiles_fill_a_row_and_have_little_in_common(extent: int) -> None:
    sizes = tile_sizes(extent, 28)
    assert {d for d in range(1, 29) if extent % d == 0} <= set(sizes)
    assert len(sizes) > 1 or extent in (1, 2)
    for size in sizes:
        step = tile_step(extent, size)
        assert step is not None
        starts = range(0, extent - size + 1, step)
        covered = [at for start in starts for at in range(start, start + size)]
        assert set(covered) == set(range(extent))
        assert len(covered) <= 1.25 * extent


@pytest.mark.parametrize("extent", [*range(1, 60), 197, 784])
def test_of_every_number_of_tiles_the_least_are_thought_of(extent: int) -> None:
    least: dict[int, int] = {}
    for size in tile_sizes(extent, extent):
        least.setdefault(tiles(extent, size), size)
    assert tall_tiles(extent) == sorted(least.values())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("together", [2, 4])
@pytest.mark.parametrize("width", [37, 49, 197, 257, 577])
def test_few_rows_of_a_dense_layer_are_multiplied_twice(
    width: int, together: int, threads: int
) -> None:
    work = qlinear.convolution(48, 4, (1, width), (1, 1), pad=(0, 0, 0, 0), together=together)
    host = X86["avx2" if together == 2 else "avx512vnni"][0]
    made = cpu_space(work, with_threads(replace(CPU, host=host), threads))
    assert made is not None
    columns, pixels = made.default["columns"], made.default["pixels"]
    assert tiles(width, columns) * tiles(columns, pixels) * pixels <= 1.09 * width
    assert pixels >= 3
    assert made.default["shared"] == int(threads > 1)


def test_tiles_that_threads_share_do_not_overlap() -> None:
    made = cpu_space(SHARED["one_odd_row"], with_threads(VNNI, 2))
    assert made is not None
    found = list(points(made, 60))
    overlapping = [point for point in found if 37 % point["columns"]]
    assert any(point["shared"] for point in overlapping)
    assert not any(point["shared"] and point["order"] == 0 for point in overlapping)


def test_sums_for_a_zero_point_are_shared_by_many_blocks() -> None:
    work = qlinear.convolution(8, 8, (8, 8), (1, 1), pad=(0, 0, 0, 0))
    made = space_of(qlinear.with_weight_zero(work))
    assert made.default["blocks"] == 8 > space_of(work).default["blocks"]


def paddings(made: Generated) -> tuple[str, ...]:
    return next(each.labels for each in made.space.tunables if each.name == "padding")


@pytest.mark.parametrize("name", ZEROS_AROUND)
def test_where_zeros_are_around_an_image_nothing_is_copied(name: str) -> None:
    made = space_of(WORKS[name])
    func = replay(made.trace(made.default), nest_of(WORKS[name], VNNI), VNNI)
    local = [each.buffer.name for each in of_kind(lower(func, VNNI).body, Alloc)]
    assert "padded" not in local
    assert "by tile" in paddings(made)


def test_only_rows_of_a_window_are_branched_around_where_tiles_are_whole_rows() -> None:
    """Which columns of the window see a pixel is known when it is compiled."""
    work = WORKS["zeros_around"]
    made = space_of(work)
    assert made.default["pixels"] == work.outputs[0].shape[3]
    func = lower(replay(made.trace(made.default), nest_of(work, VNNI), VNNI), VNNI)
    (branch,) = of_kind(func.body, If)
    assert all("_w" not in each.name for each in find(branch.condition, Var))


@pytest.mark.parametrize(
    "work",
    [
        qlinear.convolution(1, 1, (5, 5)),
        qlinear.with_zeros_around(qlinear.image_convolution()),
        qlinear.with_zeros_around(qlinear.convolution(1, 1, (5, 5), together=2)),
    ],
    ids=["zero point", "image", "pairs"],
)
def test_other_images_are_padded(work: Workload) -> None:
    assert "skipped" not in paddings(space_of(work))


def test_minimal_filtering_multiplies_half_as_often_by_the_instruction_of_pairs() -> None:
    work, host = qlinear.winograd(1, 1, (1, 8), 1, (0, 1, 0, 1)), X86["avx2"][0]
    target, made = replace(CPU, host=host), space_of(work, host)
    func = lower(replay(made.trace(made.default), nest_of(work, target), target), target)
    calls = kernel_text(func, "entry", target).count("call <8 x i32> @llvm.x86.avx2.pmadd.wd")
    tiles, vectors, points = made.default["tiles"], 2, 6
    assert calls == tiles * vectors * points


def test_sums_of_more_than_28_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="25344 products of one sum"):
        nest_of(qlinear.winograd(176, 1, (4, 4)), CPU)


def test_other_operators_have_nothing_to_choose() -> None:
    work = replace(qlinear.EXAMPLES["qlinear_conv2d"], operator="softmax")
    assert cpu_space(work, CPU) is None


@pytest.mark.parametrize(
    "name",
    ["qlinear_conv2d", "qlinear_depthwise2d", "qlinear_winograd2d", "qlinear_winograd2d_part"],
)
def test_text(name: str, golden: Golden) -> None:
    made = space_of(qlinear.EXAMPLES[name])
    rows = [f"{v.name} in {list(v.domain)} {list(v.labels)}" for v in made.space.tunables]
    golden("\n".join([*rows, *map(str, made.trace(made.default).steps)]))


def test_signed_data_stay_signed() -> None:
    assert WORKS["qlinear_conv2d_signed"].inputs[0].dtype is DType.INT8
