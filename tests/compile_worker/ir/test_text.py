"""Printed programs are read back as the same programs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.golden import Golden
from kit.kernels import nests

from compile_worker.ir.expr import Expr
from compile_worker.ir.func import Func
from compile_worker.ir.parser import ParseError, parse, parse_expr
from compile_worker.ir.printer import show

from . import functions


@given(nests.nests())
@settings(max_examples=examples(20), deadline=None)
def test_nests_survive_printing_and_parsing(func: Func) -> None:
    assert parse(show(func)) is func


@given(functions.functions())
@settings(max_examples=examples(60), deadline=None)
def test_any_function_survives_printing_and_parsing(func: Func) -> None:
    assert parse(show(func)) is func


@given(st.one_of(nests.index_exprs(), functions.values(2)))
@settings(max_examples=examples(100), deadline=None)
def test_any_expression_survives_printing_and_parsing(expr: Expr) -> None:
    buffers = {buffer.name: buffer for buffer in functions.BUFFERS}
    assert parse_expr(show(expr), buffers) is expr


def test_text_of_every_statement(golden: Golden) -> None:
    golden(show(functions.everything()))
    assert parse(show(functions.everything())) is functions.everything()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends too early"),
        ("function f", "line 1 cannot be understood: function f"),
        ("func f\nparam a: int32[4] dram\n", "ends too early"),
        ("func f\npass\n  pass", "line 3 is indented too far"),
        ("func f\nfor i in 4\npass", "line 3 is where a statement should be"),
        ("func f\na[0] = i32(1)", "line 2 is no statement"),
        ("func f\nparam a: int32[4] dram\na[0] = i32(1) +", "line 3 is no statement"),
        ("func f\nparam a: int32[4] dram\na[0] = sin(a[0])", "line 3 is no statement"),
        ("func f\nfrobnicate()", "line 2 is no statement"),
        ("func f\nif 1 <\n  pass", "line 2 has no expression"),
        ("func f\npush(load, nowhere)", "line 2 is no statement"),
        ("func f\npass\nelse\n  pass", "line 3 does not belong"),
        (
            "func f\nfor i in 4 {hosts=1}\n  pass",
            "line 2 marks a loop 'hosts'; there are intrinsic, host, thread, note: for i in 4",
        ),
        ("func f {slots=2}\npass", "line 1 marks a function 'slots'; there are operator"),
        ("func f\nblock b {align_0=2}\n  pass", "line 2 marks a block 'align_0'; there are dma"),
        ("func f\nalloc a: int8[4] local {align_01=2}\npass", "line 2 marks a buffer 'align_01'"),
        (
            "func f\nblock b {dma=move}\n  pass",
            "line 2 marks a block dma='move'; it is 'load' or 'store': block b",
        ),
        ("func f\nblock b {alu=2}\n  pass", "alu=2; it is 1"),
        ("func f\nblock b {alu=one}\n  pass", "alu='one'; it is 1"),
        ("func f {batch=0}\npass", "batch=0; it is a whole number from 1 on"),
        ("func f {note=1}\npass", "note=1; it is any text"),
        ("func f {batch}\npass", "line 1 has marks that cannot be understood"),
        ("func f {batch=1 block=16}\npass", "line 1 has marks that cannot be understood"),
    ],
)
def test_what_is_wrong_with_a_text(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_blank_lines_do_not_matter() -> None:
    func = nests.nest("dense")
    assert parse(show(func).replace("\n", "\n\n") + "\n") is func


@pytest.mark.parametrize("text", ["1 +", "f(", "a < b < c", "'text'", "lambda: 1", "min(1)"])
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(ParseError):
        parse_expr(text)
