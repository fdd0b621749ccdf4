"""Traces as text: what they say, and how two of them differ."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.trace import Step, Trace

BEFORE = Trace(
    (
        Step("cache_read", ("weight", "wgt")),
        Step("split", ("conv_h", 4)),
        Step("split", ("conv_ci", 1)),
        Step("split", ("conv_w", 7)),
        Step("reorder", ("conv_w_0", "conv_h_0")),
        Step("tensorize", ("conv", "gemm")),
        Step("unroll", ("conv_i",)),
    )
)


def test_a_changed_argument_is_shown_in_place() -> None:
    steps = [*BEFORE.steps]
    steps[3] = Step("split", ("conv_w", 14))
    assert BEFORE.diff(Trace(tuple(steps))).splitlines() == [
        "   3 steps alike",
        "~  4 split('conv_w', 7 -> 14)",
        "   3 steps alike",
    ]


def test_steps_that_come_and_go() -> None:
    fused = Step("fuse", ("conv_h_0", "conv_w_0"))
    after = Trace((*BEFORE.steps[:4], fused, *BEFORE.steps[5:], Step("unroll", ("conv_o",))))
    assert BEFORE.diff(after).splitlines() == [
        "   4 steps alike",
        "-  5 reorder('conv_w_0', 'conv_h_0')",
        "+  5 fuse('conv_h_0', 'conv_w_0')",
        "   6 tensorize('conv', 'gemm')",
        "   7 unroll('conv_i')",
        "+  8 unroll('conv_o')",
    ]


@given(st.permutations(BEFORE.steps), st.permutations(BEFORE.steps))
def test_only_equal_traces_have_no_difference(one: list[Step], other: list[Step]) -> None:
    difference = Trace(tuple(one)).diff(Trace(tuple(other)))
    assert (difference == "") == (one == other)


def test_a_trace_survives_as_text() -> None:
    assert Trace.from_json(BEFORE.to_json()) == BEFORE
    assert str(BEFORE).splitlines()[1] == "split('conv_h', 4)"


@pytest.mark.parametrize("text", ["{}", "[1]", "[[]]", "[[1, 2]]", '[["split", 1.5]]'])
def test_what_is_no_trace(text: str) -> None:
    with pytest.raises(ValueError, match="a trace"):
        Trace.from_json(text)


def test_a_pickled_trace_is_plain_rows() -> None:
    nested = Trace((*BEFORE.steps, Step("bind", (("a", 1), True, "b")), Step("end")))
    content = pickle.dumps(nested)
    assert pickle.loads(content) == nested
    assert b"Step" not in content
