"""Every annotation of the IR: its name, the nodes that carry it, its values, and what they mean.

    alloc a: int8[16] inp {slots=2}      SLOTS.of(alloc) == 2,  alloc.marks == (SLOTS(2),)

A node carries marks; a mark is one annotation with a value, and only annotations make marks. Type
checkers know on which nodes an annotation is and what its values are; `find_annotation` is for
names that come from outside, as in text and in traces. A pass that needs a new one adds it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, Mark

Marked: TypeAlias = Func | For | Block | Alloc
"""A node that carries marks."""

WHAT: Final[dict[type[Marked], str]] = {
    Func: "function",
    For: "loop",
    Block: "block",
    Alloc: "buffer",
}
"""How messages and schedules call the nodes that carry marks."""

N = TypeVar("N", bound=Marked)
V = TypeVar("V", bound=int | str)
D = TypeVar("D", bound=int | str | None)


class Allowed(Generic[V]):
    """The values of an annotation; its text says in a hint which they are."""

    __slots__ = ()

    def __contains__(self, value: int | str) -> bool:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class OneOf(Allowed[V]):
    """One of a few."""

    values: tuple[V, ...]

    def __contains__(self, value: int | str) -> bool:
        return any(type(each) is type(value) and each == value for each in self.values)

    def __str__(self) -> str:
        return " or ".join(map(repr, self.values))


@dataclass(frozen=True, slots=True)
class AtLeast(Allowed[int]):
    """Whole numbers from the least one on."""

    least: int

    def __contains__(self, value: int | str) -> bool:
        return type(value) is int and value >= self.least

    def __str__(self) -> str:
        return f"a whole number from {self.least} on"


@dataclass(frozen=True, slots=True)
class AnyText(Allowed[str]):
    """Any text."""

    def __contains__(self, value: int | str) -> bool:
        return type(value) is str

    def __str__(self) -> str:
        return "any text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation(Generic[N, V, D]):
    """What marks of one name mean.

    Attributes:
        name: as it is printed, and as traces write it.
        on: the nodes that can carry it.
        values: what it can say.
        absent: what holds of a node without it.
        meaning: one sentence about the node and the value.
    """

    name: str
    on: tuple[type[N], ...]
    values: Allowed[V]
    absent: D
    meaning: str

    def __call__(self, value: V) -> Mark:
        """The mark that says `value`.

        Raises:
            ValueError: the annotation has no such value.
        """
        mark = self.read(value)
        if mark is None:
            raise ValueError(f"{self.name} cannot be {value!r}: it is {self.values}")
        return mark

    def read(self, value: int | str) -> Mark | None:
        """The mark that says a value from outside; None if the annotation has no such value."""
        return Mark(self.name, value) if value in self.values else None

    def is_on(self, node: N) -> bool:
        """Whether the node carries it."""
        return any(mark.name == self.name for mark in marks_of(node))

    def of(self, node: N) -> V | D:
        """What it says of the node, or what holds of one without it."""
        for mark in marks_of(node):
            if mark.name == self.name:
                return cast("V", mark.value)
        return self.absent


Flag: TypeAlias = Annotation[N, Literal[1], Literal[0]]
"""An annotation that is there or not."""

_SET: Final[OneOf[Literal[1]]] = OneOf((1,))


def marks_of(node: Marked) -> tuple[Mark, ...]:
    """The marks that a node carries."""
    return node.attrs if isinstance(node, Func) else node.marks


def with_mark(marks: Iterable[Mark], mark: Mark) -> tuple[Mark, ...]:
    """The marks with one more at the end, in place of one of the same name."""
    return (*(each for each in marks if each.name != mark.name), mark)


def without_marks(
    marks: Iterable[Mark], *annotations: Annotation[Any, Any, Any]
) -> tuple[Mark, ...]:
    """The marks without those of some annotations."""
    gone = {each.name for each in annotations}
    return tuple(mark for mark in marks if mark.name not in gone)


OPERATOR: Final[Annotation[Func, str, None]] = Annotation(
    name="operator",
    on=(Func,),
    values=AnyText(),
    absent=None,
    meaning="The function computes this operator of a workload.",
)

BATCH: Final[Annotation[Func, int, int]] = Annotation(
    name="batch",
    on=(Func,),
    values=AtLeast(1),
    absent=1,
    meaning="Rows of a hardware element of data and of accumulators.",
)

BLOCK: Final[Annotation[Func, int, int]] = Annotation(
    name="block",
    on=(Func,),
    values=AtLeast(1),
    absent=16,
    meaning="Lanes of a hardware element; 16 where a function does not say.",
)

LOWER_WITH: Final[Annotation[Func, str, None]] = Annotation(
    name="lower_with",
    on=(Func,),
    values=AnyText(),
    absent=None,
    meaning="The passes of a user that lower the function, as name@digest of their plugin.",
)

DMA: Final[Annotation[Block, Literal["load", "store"], None]] = Annotation(
    name="dma",
    on=(Block,),
    values=OneOf(("load", "store")),
    absent=None,
    meaning="The block is a copy from DRAM to the chip, or back, that the DMA does.",
)

ALU: Final[Flag[Block]] = Annotation(
    name="alu",
    on=(Block,),
    values=_SET,
    absent=0,
    meaning="The block works element by element on accumulators, and the ALU does it.",
)

Intrinsic: TypeAlias = Literal["gemm", "reset"]

TENSORIZE: Final[Annotation[Block, Intrinsic, None]] = Annotation(
    name="tensorize",
    on=(Block,),
    values=OneOf(("gemm", "reset")),
    absent=None,
    meaning="The block and its innermost loops are this instruction: products, or zeros.",
)

INTRINSIC: Final[Annotation[Block | For, str, None]] = Annotation(
    name="intrinsic",
    on=(Block, For),
    values=AnyText(),
    absent=None,
    meaning="The loop, and those inside, or the block in them, are this intrinsic of a user's.",
)

KEEP: Final[Flag[Block]] = Annotation(
    name="keep",
    on=(Block,),
    values=_SET,
    absent=0,
    meaning="The block of the host is stored, not computed where it is read, as are all marked.",
)

HOST: Final[Flag[For]] = Annotation(
    name="host",
    on=(For,),
    values=_SET,
    absent=0,
    meaning="The host repeats the instruction for each iteration; the loop is no part of it.",
)

Thread: TypeAlias = Literal["worker", "vthread"]

THREAD: Final[Annotation[For, Thread, None]] = Annotation(
    name="thread",
    on=(For,),
    values=OneOf(("worker", "vthread")),
    absent=None,
    meaning="What `bind` gave each iteration; passes read the loop's kind and the slots instead.",
)

SLOTS: Final[Annotation[Alloc, int, int]] = Annotation(
    name="slots",
    on=(Alloc,),
    values=AtLeast(1),
    absent=1,
    meaning="Copies of an on-chip buffer; each time the allocation is entered takes the next.",
)

COPIES: Final[Annotation[Alloc, int, int]] = Annotation(
    name="copies",
    on=(Alloc,),
    values=AtLeast(1),
    absent=1,
    meaning="Slots that are part of the buffer: its references say which one they use.",
)

HOLD: Final[Flag[Alloc]] = Annotation(
    name="hold",
    on=(Alloc,),
    values=_SET,
    absent=0,
    meaning="Loads do not get ahead of the last operations on a tile of these accumulators.",
)

BASE: Final[Annotation[Alloc, int, None]] = Annotation(
    name="base",
    on=(Alloc,),
    values=AtLeast(0),
    absent=None,
    meaning="The first hardware element of the buffer in its memory.",
)

NOTE: Final[Annotation[Marked, str, None]] = Annotation(
    name="note",
    on=(Func, For, Block, Alloc),
    values=AnyText(),
    absent=None,
    meaning="A word to the reader, or to a pass of your own; the passes here read none.",
)


def align(axis: int) -> Annotation[Alloc, int, int]:
    """Distances along one axis of a buffer in host memory: what they are multiples of."""
    return Annotation(
        name=f"align_{axis}",
        on=(Alloc,),
        values=AtLeast(1),
        absent=1,
        meaning="Neighbours along the axis are a multiple of so many elements apart, and `skew`.",
    )


def skew(axis: int) -> Annotation[Alloc, int, int]:
    """Distances along one axis of a buffer in host memory: how much more they are."""
    return Annotation(
        name=f"skew_{axis}",
        on=(Alloc,),
        values=AtLeast(0),
        absent=0,
        meaning="Neighbours along the axis are so many elements farther apart than `align` says.",
    )


def paired(axis: int) -> Annotation[Alloc, Literal[1], Literal[0]]:
    """Elements of a buffer in host memory by two along one axis and two along the last."""
    return Annotation(
        name=f"paired_{axis}",
        on=(Alloc,),
        values=_SET,
        absent=0,
        meaning="Two neighbours along the axis and two along the last lie together, as a 2 x 2.",
    )


ANNOTATIONS: Final[tuple[Annotation[Any, Any, Any], ...]] = (
    *(OPERATOR, BATCH, BLOCK, LOWER_WITH),
    *(DMA, ALU, TENSORIZE, INTRINSIC, KEEP),
    *(HOST, THREAD),
    *(SLOTS, COPIES, HOLD, BASE),
    NOTE,
)
"""All of them, apart from those that each axis has."""

OF_AXIS: Final[Mapping[str, Callable[[int], Annotation[Alloc, Any, Any]]]] = {
    "align": align,
    "skew": skew,
    "paired": paired,
}
"""Annotations that each axis of a buffer has, by the beginning of their names."""

_BY_NAME: Final = {each.name: each for each in ANNOTATIONS}


def find_annotation(name: str, on: type[Marked]) -> Annotation[Any, Any, Any] | None:
    """The annotation of that name on that kind of node; None if there is none."""
    family, _, axis = name.rpartition("_")
    found = _BY_NAME.get(name)
    if family in OF_AXIS and axis.isdecimal() and str(int(axis)) == axis:
        found = OF_AXIS[family](int(axis))
    return found if found is not None and on in found.on else None


def names_on(on: type[Marked]) -> list[str]:
    """Names of the annotations that a kind of node can carry; of axes, those of the first."""
    every = (*ANNOTATIONS, *(of_axis(0) for of_axis in OF_AXIS.values()))
    return [each.name for each in every if on in each.on]
