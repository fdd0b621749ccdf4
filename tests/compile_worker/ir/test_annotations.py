"""Annotations: what they make and read, and that what they say of themselves is so."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
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


def _name(node: ast.expr) -> str | None:
    """The name of an annotation: SLOTS, or align of align(axis)."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in OF_AXIS:
            return name
        case ast.Name(id=name) if name.isupper():
            return name
    return None


def _uses(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Annotations that a module writes, and those that it reads, in the module's own words."""
    writes, reads = set(), set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="annotate_step"), args=[first, *_]):
                writes.add(_name(first))
            case ast.Call(func=ast.Attribute(value=value, attr="of" | "is_on")):
                reads.add(_name(value))
            case ast.Call(func=ast.Name(id="lower_blocks"), args=[_, second, *_]):
                reads.add(_name(second))
            case ast.Tuple(elts=[first, *_]) if _name(first):
                reads.update(map(_name, node.elts))  # several are asked for in turn
            case ast.Call(func=func):
                writes.add(_name(func))
    return {each for each in writes if each}, {each for each in reads if each}


def test_every_annotation_names_the_modules_that_write_and_read_it() -> None:
    written: defaultdict[str, set[str]] = defaultdict(set)
    read: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text())
        imported = {
            alias.asname or alias.name: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == table.__name__
            for alias in node.names
        }
        writes, reads = _uses(tree)
        for used, where in ((writes, written), (reads, read)):
            for name in used & imported.keys():
                where[imported[name]].add(module)
    declared = {name: each for name, each in vars(table).items() if each in ANNOTATIONS}
    assert set(declared.values()) == set(ANNOTATIONS)
    for name, each in [*declared.items(), *((name, f(0)) for name, f in OF_AXIS.items())]:
        read[name].discard("schedule.marks")  # a list of annotations by which traces choose
        assert (name, sorted(each.written_by)) == (name, sorted(written[name]))
        assert (name, sorted(each.read_by)) == (name, sorted(read[name]))


def test_only_annotations_make_marks() -> None:
    for path in sorted(ROOT.rglob("*.py")):
        made = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Mark"
        ]
        assert not made or path.name == "annotations.py", path
