"""In what blocks operators of ONNX's own arithmetic read and make values: what moves fewest bytes.

Layers and pools have blocks of their own, and so have products and floats that are not taken
element by element. All others, moves, joins of channels and what turns floats into 8 bits have
several ways; whatever is made in other blocks than a reader's is moved once for all who read it so.
What that costs, with the bytes that such operators handle themselves, those of channels that only
fill up blocks included, is a sum over the values of tables of few operators: see `least_cost`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final

import numpy as np
from tilefarm.dtype import DType

from driver.network.graph.ir import Add, Clip, Gather, IndexArray, Product, Shape, Unary
from driver.network.integer.blocks import blocked_places, blocked_shape
from driver.network.integer.qir import (
    QConcat,
    QGather,
    QMaxPool2d,
    QReshape,
    QSlice,
    QuantGraph,
    QuantNode,
    Real,
)
from driver.network.integer.qlinear import (
    DequantizeLinear,
    DynamicGrid,
    DynamicLayer,
    DynamicQuantizeLinear,
    QLinearAvgPool2d,
    QLinearBinary,
    QLinearConv2d,
    QLinearConvTranspose2d,
    QLinearDense,
    QLinearFused,
    QLinearLayer,
    QLinearLookup,
    QLinearOperator,
    QuantizeLinear,
)
from driver.network.partition.concat import plan_joins
from driver.network.partition.least_cost import Table, least_cost_labels
from driver.network.partition.pixel_rows import in_rows
from driver.network.partition.qlinear_layers import LANES, PIXEL, is_along_rows

ROW_MAJOR: Final = 1
"""The width of blocks that are no blocks."""

MOVED: Final = 2
"""What a byte costs that is moved between blocks, beside one that is read or made in its place.

On a Zen 4 with AVX-512 `tilefarm bench cpu` has 0.067 ns for a byte of `qlinear_zip`, 0.19 ns for
one of `lookup`; 0.080 ns for one of `relayout_to_rows`, 0.34 ns for one of `relayout`, and 0.33 ns
for one of `gather`, whose index is not counted. It decides little: as layers have one way each,
known networks choose alike for any number from 1 to 16.
"""

_MOST_KEPT: Final = 8
"""Layouts of one value that are thought of, beside those that it has to be in."""


@dataclass(frozen=True, slots=True)
class Way:
    """Blocks that an operator reads and makes. `in_place`: nobody moves its operands before."""

    reads: int
    makes: int
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """An order of bytes: one, whatever the shape, of all that are row-major."""

    samples: int
    channels: int
    block: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Option:
    """A way of an operator: what it reads of each value, what it makes, and its own cost."""

    way: Way
    reads: tuple[tuple[str, Layout], ...]
    makes: Layout
    cost: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """A layout in which a value is made, and all in which it is read."""

    made: Layout
    read: frozenset[Layout]

    @property
    def cost(self) -> int:
        return sum(MOVED * (self.made.nbytes + each.nbytes) for each in self.read - {self.made})


def chosen_ways(graph: QuantGraph) -> Mapping[str, Way]:
    """The way of the operator that makes each value, except reshapes, which do nothing."""
    options = Options(graph)
    names = list(options.of)
    labels = least_cost_labels(*_problem(options, names))[: len(names)]
    return {name: options.of[name][label].way for name, label in zip(names, labels, strict=True)}


class Options:
    """What every operator may do: `of` by its result, and the first works whatever others do.

    `given` are the layouts of inputs, `given_out` values that are read row-major in the end. Values
    under another shape are not known here: they are what was reshaped.
    """

    def __init__(self, graph: QuantGraph) -> None:
        self._tensors = graph.tensors
        self._made_as: dict[str, str] = {}
        for node in graph.nodes:
            if isinstance(node.op, QReshape):
                self._made_as[node.output] = self._root(node.inputs[0])
        self._makers = {node.output: node for node in graph.nodes}
        self._joins = plan_joins(graph, 1, LANES)
        self.given = {each.name: self.layout(each.name, ROW_MAJOR) for each in graph.inputs}
        self.given_out = [self._root(each.tensor) for each in graph.outputs]
        self.of = {
            node.output: tuple(self._option(node, way) for way in self._ways(node))
            for node in graph.nodes
            if not isinstance(node.op, QReshape)
        }

    def layout(self, name: str, block: int) -> Layout:
        """Of a value in such blocks."""
        samples, channels, *pixels = shape = self._shape(name)
        size = self._tensors[name].dtype.nbytes
        nbytes = math.prod(blocked_shape(shape, 1, block)) * size
        if block == ROW_MAJOR or (channels % block == 0 and math.prod(pixels) == 1):
            return Layout(1, 1, ROW_MAJOR, nbytes)
        return Layout(samples, channels, block, nbytes)

    def _shape(self, name: str) -> Shape:
        return self._tensors[name].shape

    def _root(self, name: str) -> str:
        """The value of which it is another shape, or itself."""
        return self._made_as.get(name, name)

    def _ways(self, node: QuantNode) -> Iterator[Way]:
        makes = self._blocks(node.output)
        match node.op:
            case QLinearFused(layer=layer) | DynamicLayer(layer=layer):
                yield from self._ways_of_layer(node, layer)
            case QLinearConv2d() | QLinearConvTranspose2d() | QLinearDense():
                yield from self._ways_of_layer(node, node.op)
            case QMaxPool2d() | QLinearAvgPool2d():
                yield Way(LANES, LANES)
            case QLinearLookup() | QLinearBinary():
                yield from (Way(each, each) for each in makes)
            case QuantizeLinear() | DynamicQuantizeLinear():
                yield from (Way(ROW_MAJOR, each) for each in makes)
                if self._is_element_by_element(node):
                    yield Way(LANES, LANES)
            case DynamicGrid() | Real() if self._is_element_by_element(node):
                yield Way(ROW_MAJOR, ROW_MAJOR)
                yield Way(LANES, LANES if isinstance(node.op, Real) else ROW_MAJOR)
            case DequantizeLinear():
                yield from (Way(each, ROW_MAJOR) for each in self._blocks(node.inputs[0]))
            case QGather() | QSlice() | Real(op=Gather()):
                reads = (LANES, ROW_MAJOR)
                yield from (Way(*each) for each in product(reads, makes))
                if isinstance(node.op, QSlice):
                    yield from self._views(node, node.op)
            case QConcat():
                yield Way(ROW_MAJOR, ROW_MAJOR)
                if self._is_joined_in_place(node):
                    yield Way(LANES, LANES, in_place=True)
            case _:
                yield Way(ROW_MAJOR, ROW_MAJOR)

    def _ways_of_layer(self, node: QuantNode, layer: QLinearLayer) -> Iterator[Way]:
        """A dense layer may read an image that was flattened as it is."""
        shape = self._shape(node.inputs[0])
        match layer:
            case QLinearConv2d(groups=1) if is_along_rows(
                shape[1], in_rows(shape, layer.window).window
            ):
                yield Way(shape[1], LANES)
            case QLinearDense() if is_along_rows(shape[1], PIXEL):
                yield Way(shape[1], LANES)
            case _:
                yield Way(LANES, LANES)
        image = self._shape(self._root(node.inputs[0]))
        is_image = len(image) == 4 and image[0] == shape[0] and not is_along_rows(image[1], PIXEL)
        if isinstance(layer, QLinearDense) and is_image:
            yield Way(LANES, LANES, in_place=True)

    def _blocks(self, name: str) -> tuple[int, ...]:
        """Blocks in which a value may be made."""
        if self._tensors[name].dtype is DType.FLOAT32:
            return (ROW_MAJOR,)
        channels = self._shape(name)[1]
        is_few = is_along_rows(channels, PIXEL) and channels != ROW_MAJOR
        return (LANES, ROW_MAJOR, channels) if is_few else (LANES, ROW_MAJOR)

    def _is_element_by_element(self, node: QuantNode) -> bool:
        """Whether floats in whole blocks are taken in whatever order they lie."""
        samples, channels, *_ = shape = self._shape(node.inputs[0])
        match node.op:
            case Real(op=Unary() | Clip() | Add() | Product()):
                is_plain = all(self._shape(name) == shape for name in node.inputs)
            case DynamicGrid():
                is_plain = samples == 1
            case DynamicQuantizeLinear(pad=pad):
                is_plain = samples == 1 and not any(pad)
            case op:
                is_plain = isinstance(op, QuantizeLinear)
        return is_plain and channels % LANES == 0

    def _option(self, node: QuantNode, way: Way) -> Option:
        reads = tuple(
            (self._root(name), self._read(node, place, name, way))
            for place, name in enumerate(node.inputs)
        )
        makes = self.layout(node.output, way.makes)
        return Option(way, reads, makes, self._own_cost(node, way, [x for _, x in reads], makes))

    def _read(self, node: QuantNode, place: int, name: str, way: Way) -> Layout:
        match node.op:
            case DynamicLayer() | DynamicQuantizeLinear() if place == 1:
                return self.layout(name, ROW_MAJOR)
            case QLinearFused() if place == 1:
                return self.layout(name, LANES)
            case QLinearBinary() if self._shape(name)[1] < self._shape(node.output)[1]:
                return self.layout(name, ROW_MAJOR)
            case QLinearDense() | QLinearFused() | DynamicLayer() if way.in_place:
                return self.layout(self._root(name), LANES)
        return self.layout(name, way.reads)

    def _own_cost(self, node: QuantNode, way: Way, reads: Sequence[Layout], makes: Layout) -> int:
        """Of what it handles: layers and floats do so in one way."""
        nbytes = sum(each.nbytes for each in reads) + makes.nbytes
        match node.op:
            case QGather(index=index) | Real(op=Gather(index=index)):
                return 0 if self._is_still(node, index, way) else MOVED * nbytes
            case QSlice():
                return 0 if way.in_place else MOVED * nbytes
            case QConcat() if way.in_place:
                join = self._joins[node.output]
                return 0 if join.is_dense else MOVED * nbytes
            case QConcat() | QLinearLookup() | QLinearBinary() | DequantizeLinear():
                return nbytes
            case QuantizeLinear() | DynamicQuantizeLinear() | DynamicGrid():
                return nbytes
            case Real() if self._is_element_by_element(node):
                return nbytes
        return 0

    def _is_still(self, node: QuantNode, index: IndexArray, way: Way) -> bool:
        """Whether a gather leaves every byte where it is."""
        shape = self._shape(node.inputs[0])
        elements = math.prod(blocked_shape(shape, 1, way.reads)[1:])
        if elements != math.prod(blocked_shape(self._shape(node.output), 1, way.makes)[1:]):
            return False
        places = blocked_places(index, shape, 1, way.reads, way.makes)
        return np.array_equal(places, np.arange(elements))

    def _views(self, node: QuantNode, op: QSlice) -> Iterator[Way]:
        """Of the only sample channels lie together, and in blocks where they begin with one."""
        if self._shape(node.inputs[0])[0] == 1:
            if op.start % LANES == 0:
                yield Way(LANES, LANES, in_place=True)
            yield Way(ROW_MAJOR, ROW_MAJOR, in_place=True)

    def _is_joined_in_place(self, node: QuantNode) -> bool:
        """Whether all parts are made in blocks of 16 by operators, each in a place of its own."""
        join = self._joins[node.output]
        return (
            not join.alternates
            and self._tensors[node.output].dtype is not DType.FLOAT32
            and not any(part.is_copied for part in join.parts)
            and all(
                isinstance(self._makers[part.source].op, QConcat | QMaxPool2d | QLinearOperator)
                for part in join.parts
            )
        )


def _problem(options: Options, names: Sequence[str]) -> tuple[list[int], list[Table]]:
    """Variables: the options of each operator in this order, then what is kept of each value."""
    places = {name: place for place, name in enumerate(names)}
    sizes = [len(options.of[name]) for name in names]
    tables = [
        Table((place,), np.array([float(each.cost) for each in options.of[name]]))
        for name, place in places.items()
    ]
    readers: dict[str, list[str]] = {name: [] for name in (*options.given, *names)}
    for name in names:
        for value in dict(options.of[name][0].reads):
            readers[value].append(name)
    for value, reading in readers.items():
        kept = _kept(options, value, reading)
        variable = len(sizes)
        sizes.append(len(kept))
        tables.append(Table((variable,), np.array([float(each.cost) for each in kept])))
        if value in places:
            tables.append(
                _table(
                    (places[value], variable),
                    [[each.made == one.makes for each in kept] for one in options.of[value]],
                )
            )
        for name in reading:
            fits = [[_can_read(one, value, each) for each in kept] for one in options.of[name]]
            tables.append(_table((places[name], variable), fits))
    return sizes, tables


def _table(variables: tuple[int, int], fits: Sequence[Sequence[bool]]) -> Table:
    return Table(variables, np.where(np.array(fits), 0.0, np.inf))


def _can_read(option: Option, value: str, kept: _Kept) -> bool:
    wanted = {layout for name, layout in option.reads if name == value}
    return wanted <= ({kept.made} if option.way.in_place else kept.read | {kept.made})


def _kept(options: Options, value: str, reading: Sequence[str]) -> list[_Kept]:
    """What may be kept of a value; at first what the first options of all want."""

    def of(option: Option) -> set[Layout]:
        return {layout for name, layout in option.reads if name == value}

    always = {options.layout(value, ROW_MAJOR)} if value in options.given_out else set()
    first = set(always)
    some: dict[Layout, None] = {}
    for name in reading:
        first |= of(options.of[name][0])
        if len(options.of[name]) == 1:
            always |= of(options.of[name][0])
        reads = (read for option in options.of[name] for read in option.reads)
        some |= dict.fromkeys(layout for source, layout in reads if source == value)
    made = (
        [each.makes for each in options.of[value]]
        if value in options.of
        else [options.given[value]]
    )
    rest = [each for each in some if each not in always][:_MOST_KEPT]
    sets = [
        frozenset(always.union(chosen))
        for count in range(len(rest) + 1)
        for chosen in combinations(rest, count)
    ]
    kept = (_Kept(each, read) for each in dict.fromkeys(made) for read in sets)
    return list(dict.fromkeys([_Kept(made[0], frozenset(first)), *kept]))
