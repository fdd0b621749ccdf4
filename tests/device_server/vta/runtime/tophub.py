"""Streams of the convolutions whose times on a Pynq board TopHub's log has, with its schedules.

Source of shapes, schedules and seconds: vta_v0.10.log of tlc-pack/tophub, ResNet-18. The streams
have the tiles, two virtual threads, transfers and micro-op loops of TVM's schedule; operands are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefarm.target import VtaConfig
from tilefarm.vta_isa import Memory

from device_server.vta.programs.instructions import (
    Finish,
    Instruction,
    Tokens,
    Transfer,
    Uop,
)

from .streams import MAX, MIN, SHR, alu, gemm, load, load_uops

THREADS = 2
INP_BASE, WGT_BASE, OUT_BASE = 4096, 1024, 1 << 18
"""Where operands lie, in elements of their memories; micro-ops lie before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A convolution, its tiles (blocks of 16 channels), and what the board took."""

    name: str
    ci: int
    co: int
    size: int
    kernel: int
    stride: int
    tile: tuple[int, int, int]
    """Height, width and output channel blocks of one thread's tile."""
    by_height: bool
    """Whether the two threads split the height instead of the output channels."""
    seconds: float

    @property
    def out_size(self) -> int:
        return self.size // self.stride

    @property
    def pad(self) -> int:
        return self.kernel // 2


def _layer(
    name: str, channels: tuple[int, int], size: int, window: tuple[int, int], *rest: object
) -> Measured:
    tile, by_height, seconds = rest
    assert isinstance(tile, tuple)
    assert isinstance(seconds, float)
    return Measured(
        name=name,
        ci=channels[0] // 16,
        co=channels[1] // 16,
        size=size,
        kernel=window[0],
        stride=window[1],
        tile=tile,
        by_height=bool(by_height),
        seconds=seconds,
    )


LAYERS = (
    _layer("C9", (256, 512), 14, (3, 2), (7, 7, 16), False, 0.0039937),
    _layer("C11", (512, 512), 7, (3, 1), (7, 7, 16), False, 0.0073481),
    _layer("C6", (128, 256), 28, (3, 2), (14, 14, 4), False, 0.0026691),
    _layer("C8", (256, 256), 14, (3, 1), (14, 14, 4), False, 0.0049336),
    _layer("C3", (64, 128), 56, (3, 2), (7, 28, 4), False, 0.0029655),
    _layer("C5", (128, 128), 28, (3, 1), (14, 28, 2), True, 0.0051834),
    _layer("C2", (64, 64), 56, (3, 1), (8, 56, 2), False, 0.0056993),
    _layer("C4", (64, 128), 56, (1, 2), (7, 28, 4), True, 0.0013487),
    _layer("C7", (128, 256), 28, (1, 2), (7, 14, 8), False, 0.0010288),
    _layer("C10", (256, 512), 14, (1, 2), (7, 7, 16), False, 0.0010809),
)


class _Schedule:
    """Makes the stream of one layer. Each thread has its own half of every buffer."""

    def __init__(self, layer: Measured) -> None:
        self.layer = layer
        self.height, self.width, self.channels = layer.tile
        k, s = layer.kernel, layer.stride
        self.rows, self.columns = (self.height - 1) * s + k, (self.width - 1) * s + k
        self.image = self.rows * self.columns
        self.vectors = self.height * self.width * self.channels
        self.weights = self.channels * k * k
        self.kernels = [self._product_uops(thread) for thread in range(THREADS)]
        self.uops = [uop for kernel in self.kernels for uop in kernel]
        self.plain = len(self.uops)
        self.uops += [Uop(thread * self.vectors, thread * self.vectors, 0) for thread in (0, 1)]

    def _product_uops(self, thread: int) -> list[Uop]:
        """Loops outside of them: kernel columns and tile columns, or channels and tile columns."""
        k, s = self.layer.kernel, self.layer.stride
        channels = range(self.channels) if k > 1 else range(1)
        return [
            Uop(
                thread * self.vectors + (c * self.height + y) * self.width,
                thread * self.image + (y * s + ky) * self.columns,
                thread * self.weights + (c * k + ky) * k,
            )
            for ky in range(k)
            for c in channels
            for y in range(self.height)
        ]

    def stream(self) -> Iterator[Instruction]:
        yield load_uops(len(self.uops), tokens=Tokens(push_prev=1))
        yield Transfer(store=False, tokens=Tokens(push_prev=1))
        for number, tiles in enumerate(self._tiles()):
            yield from self._tile(tiles, first=number == 0)
        last = Tokens(push_next=1)
        yield Transfer(store=False, memory=Memory.INP, tokens=Tokens(pop_next=1))
        yield Transfer(store=False, memory=Memory.INP, tokens=Tokens(pop_next=1))
        yield Transfer(store=False, memory=Memory.INP, tokens=last)
        yield Transfer(store=False, tokens=Tokens(pop_next=1, pop_prev=1))
        yield Transfer(store=False, tokens=Tokens(pop_next=1))
        yield Finish()

    def _tiles(self) -> Iterator[list[tuple[int, int]]]:
        """(first channel block, first row) of both threads, tile after tile."""
        layer = self.layer
        step_c = self.channels * (1 if layer.by_height else THREADS)
        step_y = self.height * (THREADS if layer.by_height else 1)
        for c in range(0, layer.co, step_c):
            for y in range(0, layer.out_size, step_y):
                other = (c, y + self.height) if layer.by_height else (c + self.channels, y)
                yield [(c, y), other]

    def _tile(self, places: list[tuple[int, int]], *, first: bool) -> Iterator[Instruction]:
        for thread in range(THREADS):
            wait = Tokens() if first else Tokens(pop_next=1)
            yield self._plain_gemm(thread, wait)
        for ci in range(self.layer.ci):
            for thread, (c, y) in enumerate(places):
                yield self._load_image(thread, ci, y)
                yield self._load_weights(thread, ci, c)
            for thread in range(THREADS):
                yield self._product(thread)
        for thread, (c, y) in enumerate(places):
            yield from self._epilogue(thread)
            yield self._store(thread, c, y)

    def _plain_gemm(self, thread: int, tokens: Tokens) -> Instruction:
        at = self.plain + thread
        return gemm(
            uop_begin=at, uop_end=at + 1, iter_in=self.vectors, dst_in=1, reset=1, tokens=tokens
        )

    def _load_image(self, thread: int, ci: int, y: int) -> Instruction:
        layer = self.layer
        top = y * layer.stride - layer.pad
        above, below = max(0, -top), max(0, top + self.rows - layer.size)
        right = max(0, self.columns - layer.pad - layer.size)
        return load(
            Memory.INP,
            self.columns - layer.pad - right,
            sram_base=thread * self.image,
            dram_base=INP_BASE + (ci * layer.size + top + above) * layer.size,
            y_size=self.rows - above - below,
            x_stride=layer.size,
            y_pad_0=above,
            y_pad_1=below,
            x_pad_0=layer.pad,
            x_pad_1=right,
            tokens=Tokens(pop_next=1),
        )

    def _load_weights(self, thread: int, ci: int, c: int) -> Instruction:
        window = self.layer.kernel**2
        return load(
            Memory.WGT,
            window,
            sram_base=thread * self.weights,
            dram_base=WGT_BASE + (c * self.layer.ci + ci) * window,
            y_size=self.channels,
            x_stride=self.layer.ci * window,
            tokens=Tokens(push_next=1),
        )

    def _product(self, thread: int) -> Instruction:
        k, s = self.layer.kernel, self.layer.stride
        begin = thread * len(self.kernels[0])
        outer = (
            {"iter_out": k, "src_out": 1, "wgt_out": 1}
            if k > 1
            else {"iter_out": self.channels, "dst_out": self.height * self.width, "wgt_out": 1}
        )
        return gemm(
            uop_begin=begin,
            uop_end=begin + len(self.kernels[0]),
            iter_in=self.width,
            dst_in=1,
            src_in=s,
            tokens=Tokens(pop_prev=1, push_prev=1),
            **outer,
        )

    def _epilogue(self, thread: int) -> Iterator[Instruction]:
        at = self.plain + thread
        for operation, imm in ((SHR, 8), (MAX, -127), (MIN, 127)):
            last = Tokens(push_next=1) if operation == MIN else Tokens()
            loops = {"iter_in": self.vectors, "dst_in": 1, "src_in": 1}
            yield alu(operation, imm=imm, uop_begin=at, uop_end=at + 1, tokens=last, **loops)

    def _store(self, thread: int, c: int, y: int) -> Instruction:
        layer = self.layer
        whole = self.height == layer.out_size
        rows = 1 if whole else self.channels
        per_block = layer.out_size**2
        return Transfer(
            store=True,
            memory=Memory.OUT,
            sram_base=thread * self.vectors,
            dram_base=OUT_BASE + c * per_block + y * layer.out_size,
            y_size=rows,
            x_size=self.vectors // rows,
            x_stride=per_block if rows > 1 else self.vectors,
            tokens=Tokens(pop_prev=1, push_prev=1),
        )


def stream_of(layer: Measured) -> tuple[list[Instruction], list[Uop]]:
    """The instructions of one layer, and its micro-ops as `streams.memory` puts them."""
    schedule = _Schedule(layer)
    return list(schedule.stream()), schedule.uops


IMAGE_NBYTES = 8 << 20
GEOMETRY = VtaConfig()
