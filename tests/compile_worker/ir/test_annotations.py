"""Annotations: what they make and read, and that what they say of themselves is so."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from tilefarm.dtype import DType

import compile_worker
from compile_worker.ir import annotations as table
from compile_worker.ir.annotations import (
    ALU,
    ANNOTATIONS,
    BASE,
    BATCH,
    DMA,
    HOLD,
    HOST,
    NOTE,
    OF_AXIS,
    OPERATOR,
    SLOTS,
    WHAT,
    Annotation,
    align,
    find_annotation,
    names_on,
    skew,
    with_mark,
    without_marks,
)
from compile_worker.ir.expr import Buffer, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import NOTHING, Alloc, Block, For

ROOT = Path(inspect.getfile(compile_worker)).parent
TILE = Buffer("t", (2, 16), DType.INT32, "acc")


def test_a_mark_says_what_its_annotation_was_given() -> None:
    alloc = Alloc(TILE, NOTHING, (SLOTS(2), BASE(0)))
    assert (SLOTS.of(alloc), BASE.of(alloc), HOLD.of(alloc)) == (2, 0, 0)
    assert BASE.is_on(alloc)
    assert not HOLD.is_on(alloc)
    assert DMA.of(Block("b", NOTHING, marks=(DMA("load"),))) == "load"
    assert HOST.of(For(Var("i"), 4, NOTHING, marks=(HOST(1),))) == 1
    assert OPERATOR.of(Func("f", (), NOTHING, (OPERATOR("dense"), BATCH(1)))) == "dense"


def test_what_holds_of_a_node_without_marks() -> None:
    alloc = Alloc(TILE, NOTHING)
    assert (SLOTS.of(alloc), BASE.of(alloc), align(0).of(alloc), skew(0).of(alloc)) == (
        1,
        None,
        1,
        0,
    )
    assert ALU.of(Block("b", NOTHING)) == 0


def test_nodes_with_equal_marks_are_one() -> None:
    assert Alloc(TILE, NOTHING, (SLOTS(2),)) is Alloc(TILE, NOTHING, (SLOTS(2),))
    assert align(1)(4) == align(1)(4)
    assert align(1)(4) != align(2)(4)


def test_a_mark_takes_the_place_of_one_of_its_name() -> None:
    marks = (SLOTS(2), HOLD(1))
    assert with_mark(marks, SLOTS(1)) == (HOLD(1), SLOTS(1))
    assert with_mark(marks, BASE(8)) == (SLOTS(2), HOLD(1), BASE(8))
    assert without_marks(marks, SLOTS, BASE) == (HOLD(1),)


@pytest.mark.parametrize(
    ("annotation", "value", "why"),
    [
        (SLOTS, 0, "slots cannot be 0: it is a whole number from 1 on"),
        (BASE, -1, "base cannot be -1: it is a whole number from 0 on"),
        (SLOTS, True, "slots cannot be True"),
        (ALU, True, "alu cannot be True: it is 1"),
        (DMA, "move", "dma cannot be 'move': it is 'load' or 'store'"),
        (NOTE, 1, "note cannot be 1: it is any text"),
    ],
)
def test_values_that_there_are_not(
    annotation: Annotation[Alloc, int | str, None], value: int | str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        annotation(value)
    assert annotation.read(value) is None


def test_annotations_are_found_by_name_where_they_can_be() -> None:
    for each in ANNOTATIONS:
        for on in WHAT:
            assert find_annotation(each.name, on) is (each if on in each.on else None)
    assert find_annotation("align_12", Alloc) == align(12)
    for name in ("align_", "align_-1", "align_01", "align_0", "sort_0", "slot"):
        assert find_annotation(name, Block) is None
        assert name == "align_0" or find_annotation(name, Alloc) is None


def test_every_name_that_is_listed_is_found() -> None:
    for on in WHAT:
        assert names_on(on)
        assert all(find_annotation(name, on) is not None for name in names_on(on))
    assert len({each.name for each in ANNOTATIONS}) == len(ANNOTATIONS)


def test_no_annotation_is_there_for_nothing() -> None:
    imported = {
        alias.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == table.__name__
        for alias in node.names
    }
    declared = {name for name, each in vars(table).items() if each in ANNOTATIONS}
    assert declared | OF_AXIS.keys() <= imported | {"NOTE"}, "a note is for passes of a user's"


def test_only_annotations_make_marks() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        made = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Mark"
        ]
        assert not made or path.name == "annotations.py", path
