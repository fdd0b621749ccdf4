"""Counters are numbers by name: which there are is the machine's, and what is 0 is not there."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.messages.records import MEASUREMENTS
from tilefarm.errors import TargetError
from tilefarm.machine import VTA_COUNTERS
from tilefarm.measurement import Counters, Measurement
from tilefarm.rpc import wire
from tilefarm.rpc.device_calls import RunReply
from tilefarm.target import TARGETS, load_target, target_from_document

NAMES = st.dictionaries(st.sampled_from(["cycles", "moves", "stalls"]), st.integers(0, 99))


@given(NAMES)
def test_every_number_is_found_by_its_name(counts: dict[str, int]) -> None:
    counters = Counters(**counts)
    assert {name: counters[name] for name in counts} == counts
    assert counters["nothing"] == 0
    assert counters.cycles == counts.get("cycles", 0)
    assert counters.but(moves=7)["moves"] == 7
    assert counters.but(moves=7).but(moves=counters["moves"]) == counters
    assert pickle.loads(pickle.dumps(counters)) == counters


def test_what_is_zero_is_not_there_and_the_order_of_names_says_nothing() -> None:
    assert Counters(cycles=0) == Counters()
    assert Counters(a=1, b=2) == Counters(b=2, a=1)
    assert hash(Counters(a=1, b=2)) == hash(Counters(b=2, a=1))


@given(MEASUREMENTS)
def test_those_of_vta_travel(measurement: Measurement) -> None:
    reply = wire.RUN_REPLY.decode(wire.RUN_REPLY.encode(RunReply(outcome=measurement)))
    assert isinstance(reply.outcome, Measurement)
    assert reply.outcome.counters == measurement.counters


def test_a_machine_says_what_it_counts() -> None:
    assert TARGETS["sim"].model.counters == VTA_COUNTERS
    assert TARGETS["sim"].model.counts_cycles
    assert not load_target("cpu").model.counts_cycles
    document = {"name": "mine", "machine": {"kind": "toy", "counters": ["cycles", "moves"]}}
    target = target_from_document(document, where="t")
    assert target.model.counters == ("cycles", "moves")
    assert target_from_document(json.loads(target.to_json()), where="t") == target


@pytest.mark.parametrize(
    ("counters", "why"),
    [
        (["a", "a"], "machine.counters: a name is there twice"),
        ("cycles", "machine.counters: 'cycles' is no list of names"),
        (["no name"], "machine.counters: ['no name'] is no list of names"),
    ],
)
def test_names_that_cannot_be_are_told(counters: object, why: str) -> None:
    document = {"name": "mine", "machine": {"kind": "toy", "counters": counters}}
    with pytest.raises(TargetError) as refused:
        target_from_document(document, where="t")
    assert why in refused.value.what
