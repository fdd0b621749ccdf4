"""Machines as data: VTA is one, a target's JSON may describe others, and what cannot be is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tilefarm.dtype import DType
from tilefarm.errors import TargetError
from tilefarm.model import Engine, Lanes, MachineModel, Memory
from tilefarm.target import TARGETS, Target, target_from_document

TOY = MachineModel(
    kind="toy",
    engines=(Engine(name="mover"), Engine(name="adder", instances=2, queues=3)),
    memories=(
        Memory(
            name="left",
            nbytes=4096,
            alignment=16,
            readers=("adder",),
            writers=("mover", "adder"),
            dtypes=(DType.INT8, DType.INT32),
        ),
    ),
)
ALONE = MachineModel(kind="cpu")


def read(machine: object) -> Target:
    document = {"name": "mine", "machine": machine}
    return target_from_document(json.loads(json.dumps(document)), where="t.json")


@pytest.mark.parametrize("name", TARGETS)
def test_vta_is_a_machine_whose_memories_are_its_geometry(name: str) -> None:
    vta, model = TARGETS[name].geometry, TARGETS[name].model
    assert model.kind == "vta"
    depths = {memory.name: memory.depth for memory in model.memories}
    assert depths == {
        "uop": vta.uop_depth,
        "inp": vta.inp_depth,
        "wgt": vta.wgt_depth,
        "acc": vta.acc_depth,
    }
    assert "machine" not in json.loads(TARGETS[name].to_json())


@pytest.mark.parametrize("machine", [TOY, ALONE], ids=["two engines of a kind", "no accelerator"])
def test_a_machine_survives_its_target_s_file(machine: MachineModel) -> None:
    target = Target(name="mine", machine=machine)
    again = target_from_document(json.loads(target.to_json()), where="t.json")
    assert again == target
    assert again.model == machine
    assert again.digest == target.digest != Target(name="mine").digest


def test_a_memory_that_is_not_there_is_named() -> None:
    assert TOY.memory("left").depth == 256
    with pytest.raises(KeyError, match="toy has no memory right"):
        TOY.memory("right")


LEFT: dict[str, Any] = {"name": "left", "nbytes": 64, "readers": ["a"], "writers": ["a"]}
WRONG: dict[str, tuple[object, str]] = {
    "list": ([], "machine: not a JSON object"),
    "nameless": ({}, "machine.kind: missing, or not a text"),
    "twice": ({"kind": "vta"}, "machine.kind: vta is described by the section vta alone"),
    "unknown": ({"kind": "toy", "speed": 1}, "machine.speed: unknown key"),
    "no list": ({"kind": "toy", "engines": {}}, "machine.engines: not a list of JSON objects"),
    "no name": ({"kind": "toy", "engines": [{}]}, "machine.engines[0].name: missing"),
    "no number": (
        {"kind": "toy", "engines": [{"name": "a", "queues": True}]},
        "machine.engines[0].queues: True is no sensible number",
    ),
    "no names": (
        {"kind": "toy", "memories": [{**LEFT, "readers": "a"}]},
        "machine.memories[0].readers: 'a' is no list of names",
    ),
    "no types": (
        {"kind": "toy", "memories": [{**LEFT, "dtypes": ["int4"]}]},
        "machine.memories[0].dtypes: ['int4'] is not all types of elements",
    ),
    "stranger": (
        {"kind": "toy", "memories": [LEFT]},
        "machine: 'a' reaches left, and is no engine",
    ),
    "no room": (
        {"kind": "toy", "engines": [{"name": "a"}], "memories": [{**LEFT, "alignment": 65}]},
        "machine: memory left has 64 bytes and is addressed by 65",
    ),
    "same name": (
        {"kind": "toy", "engines": [{"name": "left"}], "memories": [{**LEFT, "readers": []}]},
        "machine: 2 engines or memories are called 'left'",
    ),
    "taken": ({"kind": "toy", "engines": [{"name": "dram"}]}, "machine: 'dram' is a memory of"),
    "none": (
        {"kind": "toy", "engines": [{"name": "a", "instances": 0}]},
        "machine: engine a needs an instance and a queue",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_machine_is_told(case: str) -> None:
    machine, why = WRONG[case]
    with pytest.raises(TargetError) as refused:
        read(machine)
    assert why in refused.value.what
    assert refused.value.hint


def test_blocks_are_powers_of_two() -> None:
    with pytest.raises(TargetError) as refused:
        read({"kind": "toy", "lanes": {"batch": 0, "block": 12}})
    assert "machine.lanes.batch: 0 is no power of two up to 256" in refused.value.what
    assert "machine.lanes.block: 12 is no power of two" in refused.value.what
    assert read({"kind": "toy", "lanes": {"block": 8}}).lanes == Lanes(batch=1, block=8)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("log_batch", -1, "vta.log_batch: -1 is not within 0..8"),
        ("log_block", 1 << 20, "vta.log_block: 1048576 is not within 0..8"),
        ("log_acc_buff_size", 3, "vta.log_acc_buff_size: this machine is no VTA"),
    ],
)
def test_of_vta_another_machine_has_its_blocks_alone(key: str, value: int, why: str) -> None:
    document = {"name": "mine", "machine": {"kind": "toy"}, "vta": {key: value}}
    with pytest.raises(TargetError, match=why):
        target_from_document(document, where="t.json")


def test_tensors_are_blocked_as_the_machine_says() -> None:
    document = {"name": "mine", "machine": {"kind": "toy"}, "vta": {"log_block": 3}}
    assert target_from_document(document, where="t.json").lanes.block == 8
