"""Equal nodes are one object and cannot be changed, also after pickling and copying."""

import copy
import pickle

import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.growth import growth_nbytes
from kit.kernels import nests
from tilefarm.dtype import DType

from compile_worker.ir.expr import INDEX, Add, Buffer, Const, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import NOTHING, For, LoopKind, Seq, Store, sequence
from compile_worker.ir.visit import (
    find,
    map_children,
    replace_buffers,
    rewrite,
    substitute,
    variables,
    walk,
)

from . import functions

ROW, COLUMN = Var("i"), Var("j")
A = Buffer("a", (4, 8), DType.INT32)


def test_equal_nodes_are_one_object() -> None:
    assert Add(ROW, Const(1, INDEX)) is ROW + 1
    assert Var("i") is Var(name="i")
    assert A[ROW, 0] is Load(A, (ROW, Const(0, INDEX)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Const(1, INDEX), Const(1, DType.INT32)),
        (Const(1, DType.FLOAT32), Const(1.0, DType.FLOAT32)),
        (Const(0.0, DType.FLOAT32), Const(-0.0, DType.FLOAT32)),
        (Const(True, DType.BOOL), Const(1, DType.BOOL)),
    ],
)
def test_literals_that_python_takes_for_equal_are_not(one: Const, other: Const) -> None:
    assert one is not other
    assert type(one.value) is not type(other.value) or repr(one) != repr(other)


def test_defaults_and_keywords_make_the_same_node() -> None:
    loop = For(ROW, 4, NOTHING)
    assert loop is For(var=ROW, extent=4, body=NOTHING, kind=LoopKind.SERIAL, marks=())


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), (("x", "y"), {}), (("x",), {"scope": "dram"}), (("x",), {"name": "y"})],
)
def test_wrong_fields_are_refused(args: tuple[str, ...], named: dict[str, str]) -> None:
    with pytest.raises(TypeError, match="Var"):
        Var(*args, **named)


def test_nodes_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        setattr(ROW, "name", "other")  # noqa: B010  # what a type checker refuses


@given(nests.nests())
@settings(max_examples=examples(10), deadline=None)
def test_pickling_and_copying_keep_identity(func: Func) -> None:
    assert pickle.loads(pickle.dumps(func)) is func
    assert copy.deepcopy(func) is func


def test_dead_nodes_are_forgotten() -> None:
    kept = Add(Var("kept"), Var("other"))

    def make(step: int) -> None:
        assert Add(kept, Const(step + 10_000, INDEX)) is Add(kept, Const(step + 10_000, INDEX))

    # In one of the windows the table of all nodes may be made anew.
    assert growth_nbytes(make, windows=3) < 20_000, "less than a thousand of anything"
    assert Add(Var("kept"), Var("other")) is kept


def test_links_are_the_fields_with_nodes() -> None:
    for at in walk(functions.everything()):
        for name in at.__match_args__:
            value = getattr(at, name)
            items = value if isinstance(value, tuple) else (value,)
            if name in at.links:
                plain = (int, type(None))  # an immediate is a number or what the host reads
                assert all(isinstance(item, (Node, *plain)) for item in items)
            else:
                assert not any(isinstance(item, Node) for item in items)


def test_walk_is_parents_first_and_finds_every_occurrence() -> None:
    expr = (ROW + COLUMN) * (ROW + COLUMN)
    assert list(walk(expr)) == [expr, ROW + COLUMN, ROW, COLUMN, ROW + COLUMN, ROW, COLUMN]
    assert list(find(expr, Var)) == [ROW, COLUMN, ROW, COLUMN]
    assert variables(expr) == {ROW, COLUMN}


def test_rewriting_nothing_returns_the_same_object() -> None:
    func = nests.nest("conv2d")
    assert rewrite(func, lambda node: None) is func
    assert map_children(func, lambda node: node) is func


def test_substitute_and_replace_buffers() -> None:
    stmt = For(COLUMN, 8, Store(A, (ROW, COLUMN), A[ROW, COLUMN] + 1))
    moved = substitute(stmt, {ROW: COLUMN * 0 + 3})
    assert ROW not in variables(moved)
    other = Buffer("other", (4, 8), DType.INT32, "acc")
    renamed = replace_buffers(stmt, {A: other})
    assert set(find(renamed, Buffer)) == {other}


def test_sequences_are_flat() -> None:
    loop = For(ROW, 2, NOTHING)
    assert sequence([loop]) is loop
    assert sequence([NOTHING, loop, Seq((loop, loop))]) is Seq((loop, loop, loop))
    assert sequence([]) is NOTHING
