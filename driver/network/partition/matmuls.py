"""Products of two activations as calls: what lies as the kernel reads it is read where it lies.

The kernel takes a matrix for each group of channels: its channels in whole blocks, and of the first
operand its columns as well. On a target of one row, blocked data [N, G*K, J] are just that where K
fills whole blocks, and so are values that are stored by groups; all others are gathered.
"""

from __future__ import annotations

import math

import numpy as np
from tilefarm.dtype import DType
from tilefarm.target import Target

from driver.network.graph.ir import IndexArray, Shape
from driver.network.integer.arithmetic import half
from driver.network.integer.blocks import (
    from_group_tiles,
    group_tiles,
    group_tiles_shape,
    stored_places,
    to_blocks,
)
from driver.network.integer.qir import (
    INT8_MAX,
    INT8_MIN,
    QGather,
    QMatMul,
    QuantGraph,
    QuantNode,
)
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.layers import MULTIPLIES, Constants
from driver.network.partition.pack import bias_tiles, unit_rows
from driver.network.partition.values import Values

_PADS = "brings the channels of each group into blocks of their own"


class MatMuls:
    """Makes the calls for products of activations."""

    def __init__(self, graph: QuantGraph, target: Target, made: Assembly, values: Values) -> None:
        self._graph = graph
        self._target = target
        self._made = made
        self._values = values
        self._gathered: dict[tuple[str, int, int], str] = {}
        self._moved = {node.output: node for node in graph.nodes if self._only_products_read(node)}

    def takes(self, node: QuantNode) -> bool:
        """Whether a move is made together with that into the tiles of the products behind it."""
        return node.output in self._moved

    def call(self, node: QuantNode, op: QMatMul) -> None:
        """Adds the steps of one product."""
        first, second = node.inputs
        channels = self._graph.tensors[second].shape[1]
        out = self._graph.tensors[node.output].shape
        lanes = self._target.lanes
        batch, block = lanes.batch, lanes.block
        weight, tiles = self._operand(node, first, op.groups, block)
        data = self._operand(node, second, op.groups, batch)
        shape = group_tiles_shape(out, op.groups, batch, block)
        lies = batch == 1 and (
            out[1] // op.groups % block == 0 or self._values.is_grouped(node.output)
        )
        result = node.output if lies else self._made.fresh(f"{node.output}.tiles")
        if lies:
            self._values.result(result)
        self._made.call(
            node.name,
            "matmul",
            {"data": data, "weight": (weight, tiles)},
            _rounding(node.name, op.shift, self._target),
            {"lo": INT8_MIN, "hi": INT8_MAX, **_first_shift(op.shift, self._target)},
            result=result,
            shape=shape,
            why=MULTIPLIES,
            macs=math.prod(out) * (channels // op.groups),
        )
        if not lies:
            places = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
            found = to_blocks(from_group_tiles(places, out, op.groups) + 1, batch, block) - 1
            blocked = self._made.blocked(out)
            self._gather((result, shape), found, self._values.result(node.output), blocked)

    def _operand(self, node: QuantNode, name: str, groups: int, rows: int) -> tuple[str, Shape]:
        """The tensor that has an operand with so many columns in a tile, and its shape."""
        lanes, shape = self._target.lanes, self._graph.tensors[name].shape
        tiles = group_tiles_shape(shape, groups, rows, lanes.block)
        if self._lies_as_read(name, groups, rows):
            return self._values.read(name), tiles
        key = (name, groups, rows)
        if key not in self._gathered:
            source, places = self._places(name)
            found = group_tiles(places + 1, groups, rows, lanes.block) - 1
            self._gathered[key] = self._made.fresh(f"{node.output}.{name}")
            self._gather(source, found, self._gathered[key], tiles)
        return self._gathered[key], tiles

    def _lies_as_read(self, name: str, groups: int, rows: int) -> bool:
        """Whether a value lies as the kernel takes it with so many columns in a tile."""
        lanes, shape = self._target.lanes, self._graph.tensors[name].shape
        whole = self._values.is_grouped(name) or shape[1] // groups % lanes.block == 0
        return lanes.batch == 1 and whole and shape[2] % rows == 0

    def _only_products_read(self, node: QuantNode) -> bool:
        """Whether a node moves what only products read that gather it anyway."""
        lanes, name = self._target.lanes, node.output
        if not isinstance(node.op, QGather) or node.op.fill:
            return False
        readers = [reader for reader in self._graph.nodes if name in reader.inputs]
        return all(
            isinstance(reader.op, QMatMul)
            and not any(
                operand == name and self._lies_as_read(name, reader.op.groups, rows)
                for operand, rows in zip(reader.inputs, (lanes.block, lanes.batch), strict=True)
            )
            for reader in readers
        )

    def _places(self, name: str) -> tuple[tuple[str, Shape], IndexArray]:
        """The tensor to gather a value from, with its shape, and the places of its elements."""
        move = self._moved.get(name)
        source = move.inputs[0] if move is not None else name
        lanes, logical = self._target.lanes, self._values.logical(source)
        places = stored_places(logical, lanes.batch, lanes.block)
        shape = self._graph.tensors[name].shape
        if move is not None and isinstance(move.op, QGather):
            rows = places.reshape(shape[0], -1)
            places = np.where(move.op.index < 0, -1, rows[:, np.maximum(move.op.index, 0)])
        return (self._values.read(source), self._made.blocked(logical)), places.reshape(shape)

    def _gather(
        self, source: tuple[str, Shape], index: IndexArray, result: str, shape: Shape
    ) -> None:
        """Moves every element of a tensor that has that shape; -1 is a zero."""
        tensor, before = source
        if result not in self._made.tensors:
            self._made.declare(result, shape, DType.INT8, "intermediate")
        self._made.call(
            result,
            "gather",
            {"x": (tensor, (1, math.prod(before)))},
            {"index": Constant(f"{result}.index", index.reshape(-1))},
            {},
            result=result,
            shape=(1, index.size),
            why=_PADS,
        )


def _first_shift(shift: int, target: Target) -> dict[str, int]:
    """The part of a shift that the target needs another instruction for."""
    most = target.limits.max_shift
    return {"first_shift": most} if shift > most else {}


def _rounding(name: str, shift: int, target: Target) -> Constants:
    """What makes the sums int8: half of what is shifted out is added to all of them first."""
    if not shift:
        return {}
    rounds = np.full(target.lanes.block, half(shift), np.int32)
    last = shift - sum(_first_shift(shift, target).values())
    return {
        "bias": Constant(f"{name}.round", bias_tiles(rounds, target)[0]),
        "unit": Constant("unit", unit_rows(target)),
        "shift": Constant(f"{name}.shift", np.array([last], np.int32)),
    }
