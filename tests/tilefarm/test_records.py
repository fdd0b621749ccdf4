"""Digests, traces, workloads, spaces and small words of the vocabulary."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kit.counting_ids import CountingIds
from kit.manual_clock import ManualClock
from tilefarm.artifact import Artifact
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest, canonical_json
from tilefarm.dtype import DType
from tilefarm.measurement import Precision, RunJob, Status
from tilefarm.names import RandomIds, symbol, unused
from tilefarm.space import (
    Le,
    Prod,
    SearchSpace,
    Select,
    Sum,
    Table,
    Variable,
    holds,
    violations,
)
from tilefarm.trace import Argument, Step, Trace
from tilefarm.workload import OPERATORS, AttrValue, TensorSpec, Workload

DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS: st.SearchStrategy[Argument] = st.recursive(
    st.integers() | st.text(max_size=5) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
TRACES = st.lists(
    st.builds(Step, st.text(min_size=1, max_size=5), st.lists(ARGUMENTS, max_size=3).map(tuple)),
    max_size=4,
).map(lambda steps: Trace(tuple(steps)))
TENSORS = st.builds(
    TensorSpec,
    st.text(min_size=1, max_size=5),
    st.lists(st.integers(1, 64), max_size=6).map(tuple),
    st.sampled_from(DType),
)
ATTRS: st.SearchStrategy[AttrValue] = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.lists(st.integers(), max_size=4).map(tuple)
)
WORKLOADS = st.builds(
    Workload,
    operator=st.sampled_from(sorted(OPERATORS)),
    inputs=st.lists(TENSORS, min_size=1, max_size=3).map(tuple),
    outputs=st.lists(TENSORS, min_size=1, max_size=2).map(tuple),
    attrs=st.dictionaries(st.text(min_size=1, max_size=4), ATTRS, max_size=3).map(
        lambda attrs: tuple(attrs.items())
    ),
)
TILES = SearchSpace(
    name="tiles",
    version=1,
    variables=(
        Variable(name="inner", domain=(1, 2, 4, 8)),
        Variable(name="outer", domain=(1, 2, 4, 8)),
        Variable(name="order", domain=(0, 1), labels=("io", "oi")),
        Variable(name="extent", tunable=False),
        Variable(name="sram", tunable=False),
        Variable(name="first", tunable=False),
    ),
    constraints=(
        Prod(name="extent", product="extent", factors=("inner", "outer")),
        Le(name="fits", left="extent", bound=8, why="the layer has 8 rows"),
        Sum(name="sram", total="sram", terms=((2, "inner"), (1, "outer")), constant=1),
        Le(name="smaller", left="inner", bound="outer"),
        Select(name="first", value="first", choice="order", options=("inner", "outer")),
        Table(name="shapes", variables=("inner", "outer"), rows=((1, 8), (2, 4), (4, 2))),
    ),
    default=(("inner", 1), ("outer", 8)),
)
POINT = {"inner": 2, "outer": 4, "order": 1, "extent": 8, "sram": 9, "first": 4}


@given(st.binary(), st.binary())
def test_equal_content_equal_digest(a: bytes, b: bytes) -> None:
    assert (Digest.of(a) == Digest.of(b)) == (a == b)


INSIDE = "0" * 31 + "g" + "0" * 32


@pytest.mark.parametrize("text", ["", "00", "G" * 64, "A" * 64, INSIDE, "0" * 63, "0" * 65])
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="SHA-256"):
        Digest(text)


def test_a_digest_shows_itself() -> None:
    digest = Digest.of(b"")
    assert str(digest) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest.short == "e3b0c44298fc"


@given(DOCUMENTS)
def test_a_document_has_one_text(document: object) -> None:
    text = canonical_json(document)
    assert json.loads(text) == document
    assert canonical_json(json.loads(text)) == text
    assert Digest.of_json(document) == Digest.of(text.encode())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"x": value})


@given(TRACES)
def test_a_trace_survives_json(trace: Trace) -> None:
    again = Trace.from_json(trace.to_json())
    assert again == trace
    assert again.digest == trace.digest


def test_a_trace_reads_like_a_schedule() -> None:
    trace = Trace((Step("split", ("i", 4, (True, "x"))), Step("reorder")))
    assert str(trace) == "split('i', 4, [True, 'x'])\nreorder()"


@pytest.mark.parametrize("text", ["{}", "[1]", "[[]]", "[[1]]", '[["f", 1.5]]', '[["f", null]]'])
def test_what_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="trace"):
        Trace.from_json(text)


@given(WORKLOADS)
def test_a_workload_survives_json(workload: Workload) -> None:
    again = Workload.from_json(workload.to_json())
    assert again == workload
    assert again.digest == workload.digest


@given(WORKLOADS)
def test_the_order_of_attributes_says_nothing(workload: Workload) -> None:
    assert replace(workload, attrs=workload.attrs[::-1]) == workload


@given(WORKLOADS, WORKLOADS)
def test_different_workloads_have_different_digests(a: Workload, b: Workload) -> None:
    assume(a.to_json() != b.to_json())
    assert a.digest != b.digest


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="fft"):
        Workload("fft", (), ())


def test_a_workload_has_a_name_for_people() -> None:
    data = TensorSpec("data", (1, 2, 14, 14, 1, 16), DType.INT8)
    weight = TensorSpec("weight", (4, 2, 3, 3, 16, 16), DType.INT8)
    conv = Workload("conv2d", (data, weight), (data,), (("stride", (2, 2)),))
    assert conv.name == f"conv2d_1x2x14x14_4co_3x3_s2_{conv.digest.hex[:6]}"
    assert str(data) == "data: int8[1, 2, 14, 14, 1, 16]"
    assert weight.nbytes == 4 * 2 * 9 * 256


BORDERED = Workload(
    "conv2d",
    (TensorSpec("data", (2, 1, 4, 5, 1, 16), DType.INT8),) * 2,
    (TensorSpec("out", (2, 3, 7, 9, 1, 16), DType.INT8),),
    (("stride", (1, 1)), ("border", (1, 2, 2, 2))),
)


def test_an_output_has_a_border_around_what_is_computed() -> None:
    inner = BORDERED.unbordered
    assert BORDERED.border == (1, 2, 2, 2)
    assert BORDERED.within == inner.outputs[0].shape == (2, 3, 4, 5, 1, 16)
    assert inner.border == (0, 0, 0, 0)
    assert (inner.inputs, inner.attrs) == (BORDERED.inputs, (("stride", (1, 1)),))
    assert inner.unbordered is inner
    assert "b1222" in BORDERED.name


@pytest.mark.parametrize(
    ("border", "why"),
    [
        ((1, 1), "each from 0 on"),
        ((0, -1, 0, 0), "each from 0 on"),
        ((4, 0, 3, 0), "nothing is within, of 7 x 9"),
        ((0, 9, 0, 0), "nothing is within, of 7 x 9"),
    ],
)
def test_a_border_that_does_not_fit_is_refused(border: tuple[int, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        _ = replace(BORDERED, attrs=(("border", border),)).unbordered


def test_only_images_have_borders() -> None:
    flat = replace(BORDERED, outputs=(TensorSpec("out", (4, 16), DType.INT8),))
    with pytest.raises(ValueError, match="no rows and columns"):
        _ = flat.within


def test_a_border_alone_has_a_name_for_people() -> None:
    work = Workload("border", (), BORDERED.outputs, (("border", (1, 0, 0, 0)), ("fill", 3)))
    assert work.name == f"border_2x3x7x9_b1000_{work.digest.hex[:6]}"


def test_attributes_have_types() -> None:
    workload = Workload("add", (), (), (("a", 3), ("b", 0.5), ("c", (1, 2))))
    assert workload.attr_int("a") == 3
    assert workload.attr_float("a") == 3.0
    assert workload.attr_float("b") == 0.5
    assert workload.attr_ints("c") == (1, 2)
    for name, get in (
        ("b", workload.attr_int),
        ("c", workload.attr_float),
        ("a", workload.attr_ints),
    ):
        with pytest.raises(TypeError, match=name):
            get(name)


def test_a_point_is_judged_by_every_constraint() -> None:
    assert violations(TILES, POINT) == []
    assert violations(TILES, {**POINT, "inner": 3}) == [
        "domain:inner",
        "extent",
        "sram",
        "shapes",
    ]
    assert violations(TILES, {**POINT, "first": 2}) == ["first"]
    assert violations(TILES, {**POINT, "order": 7, "first": 2}) == ["domain:order", "first"]


@pytest.mark.parametrize("choice", [-1, 2])
def test_a_choice_outside_of_its_options_is_none(choice: int) -> None:
    select = Select(name="s", value="v", choice="c", options=("a", "b"))
    assert not holds(select, {"v": 1, "c": choice, "a": 1, "b": 1})


def test_a_space_is_known_by_its_content() -> None:
    assert json.loads(TILES.to_json())["constraints"][0]["kind"] == "Prod"
    assert TILES.digest == replace(TILES).digest
    assert TILES.digest != replace(TILES, version=2).digest
    assert [variable.name for variable in TILES.tunables] == ["inner", "outer", "order"]


def test_an_artifact_knows_the_digest_of_its_code() -> None:
    artifact = Artifact(job=Digest.of(b"job"), code=b"code", symbols=("kernel",))
    assert artifact.digest == Digest.of(b"code")
    assert artifact.digest is artifact.digest
    assert replace(artifact, code=b"other").digest == Digest.of(b"other")


def test_a_name_that_nothing_has() -> None:
    assert unused("x", [], {"y": 1}) == "x"
    assert unused("x", ["x"], {"x_": 1}) == "x__"


@given(st.text())
def test_symbols_are_symbols(text: str) -> None:
    made = symbol(text)
    assert made.isascii()
    assert made.isidentifier()


def test_identifiers_are_given_once() -> None:
    counting, random = CountingIds(), RandomIds()
    assert [counting.fresh("a"), counting.fresh("a")] == ["a-1", "a-2"]
    assert random.fresh("a") != random.fresh("a")


def test_a_manual_clock_moves_when_told() -> None:
    clock = ManualClock(5.0)
    clock.advance(1.0)
    clock.sleep(2.0)
    assert clock.seconds() == clock.wall_seconds() == 8.0


def test_the_systems_clock_moves_by_itself() -> None:
    clock = SystemClock()
    before = clock.seconds()
    clock.sleep(0.001)
    assert clock.seconds() > before
    assert clock.wall_seconds() > 1e9


def test_only_the_farms_own_faults_are_tried_again() -> None:
    faults = {status for status in Status if status.is_farm_fault}
    assert faults == {Status.DEVICE_LOST, Status.INFRA_ERROR}


def test_a_job_s_limit_has_room_for_all_that_it_times() -> None:
    job = RunJob(artifact=Digest.of(b""), entry="kernel", buffers=(), timeout_seconds=3.0)
    timed = replace(job, precision=Precision(error=0.01, seconds=2.0))
    profiled = replace(timed, profile=("a", "b"))
    assert job.limit_seconds == 3
    assert replace(job, profile=("a", "b")).limit_seconds == 6
    assert timed.limit_seconds >= 3 + 2 + 3
    assert profiled.limit_seconds >= 3 + 2 * (2 + 3)


def test_types_know_their_size() -> None:
    assert [dtype.nbytes for dtype in DType] == [1, 1, 1, 2, 4, 8, 4]
    assert [str(d) for d in DType if d.is_float] == ["float32"]
    assert not DType.BOOL.is_integer
