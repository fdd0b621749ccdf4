"""Processors as targets: what Linux says of one becomes LLVM's names, its level, its caches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.errors import TargetError
from tilefarm.processors import (
    AARCH64,
    ARMV7,
    X86_64,
    caches_of,
    host_of,
    processor,
    require_processor,
    with_threads,
)
from tilefarm.target import TARGETS, Host, built_in_targets, impossibilities, load_target
from tilefarm.target import target_from_document as read

V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
V4 = f"{V3} avx512bw avx512cd avx512dq avx512f avx512vl"
NAMES = [name for name in built_in_targets() if name not in TARGETS]


@pytest.mark.parametrize(
    ("architecture", "flags", "cpu", "features"),
    [
        ("x86_64", "sse2", "x86-64", ""),
        ("x86_64", V2, "x86-64-v2", ""),
        ("x86_64", V3, "x86-64-v3", ""),
        ("x86_64", f"{V3} avx_vnni", "x86-64-v3", "+avxvnni"),
        ("x86_64", V4, "x86-64-v4", ""),
        ("x86_64", V4.replace("movbe", ""), "x86-64-v2", ""),
        ("x86_64", f"{V4} avx512_vnni amx_int8", "x86-64-v4", "+amx-int8,+avx512vnni"),
        ("aarch64", "asimd asimddp i8mm", "generic", "+dotprod,+i8mm"),
        ("armv7l", "neon vfpv4", "generic", "+neon"),
    ],
)
def test_flags_are_a_level_and_what_it_lacks(
    architecture: str, flags: str, cpu: str, features: str
) -> None:
    host = host_of(architecture, flags.split())
    assert (host.cpu, host.features) == (cpu, features)
    triples = {"x86_64": X86_64, "aarch64": AARCH64, "armv7l": ARMV7}
    assert host.triple == triples[architecture]


def test_caches_are_those_for_data(tmp_path: Path) -> None:
    rows = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K")]
    for index, words in enumerate([*rows, ("3", "Unified", "?")]):
        (tmp_path / f"index{index}").mkdir()
        for name, word in zip(("level", "type", "size"), words, strict=True):
            (tmp_path / f"index{index}" / name).write_text(f"{word}\n")
    assert caches_of(tmp_path) == {"l1": 48 << 10, "l2": 1 << 20}
    assert caches_of(tmp_path / "none") == {}


def test_a_processor_is_a_machine_of_cores_and_caches() -> None:
    target = processor("mine", Host(), cores=4, caches={"l2": 1 << 20, "l1": 48 << 10})
    assert [each.instances for each in target.model.engines] == [4]
    assert [each.name for each in target.model.memories] == ["l1", "l2"]
    assert (target.lanes.batch, target.lanes.block) == (1, 16)
    assert not target.has_accelerator
    assert target.vta is None
    with pytest.raises(TargetError, match="target mine has no VTA: its machine is a cpu"):
        _ = target.geometry


@pytest.mark.parametrize("name", NAMES)
def test_a_processor_survives_its_file(name: str) -> None:
    target = load_target(name)
    document = json.loads(target.to_json())
    assert document.keys() == {"name", "host", "limits", "machine"}
    assert document["limits"] == {"alu_mul": True}
    assert read(document, where="t.json") == target
    assert read(document, where="t.json").digest == target.digest
    assert impossibilities(target) == []


def test_threads_are_a_part_of_a_processor() -> None:
    one, two = processor("mine", Host(), cores=4, caches={"l1": 1 << 15}), "mine@2"
    target = with_threads(one, 2)
    assert (target.name, target.model.threads, target.model.cores) == (two, 2, 4)
    assert target.digest != one.digest, "times of different numbers of threads are not compared"
    assert with_threads(one, 1) == one
    assert read(json.loads(target.to_json()), where="t.json") == target


def test_a_target_without_threads_keeps_the_digest_that_is_in_records() -> None:
    document = json.loads(load_target("cpu").to_json())
    del document["machine"]["threads"]
    assert read(document, where="t.json").digest == load_target("cpu").digest


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("sim@2", "threads are for processors", "--target cpu"),
        ("cpu@0", "0 threads on cpu: it has", "--target cpu@N, of 1 to "),
        ("cpu@9999", "9999 threads on cpu: it has", "--target cpu@N, of 1 to "),
    ],
)
def test_threads_that_there_cannot_be(name: str, what: str, hint: str) -> None:
    with pytest.raises(TargetError) as refused:
        load_target(name)
    assert what in refused.value.what
    assert hint in refused.value.hint


def test_a_known_processor_has_as_many_cores_as_are_wanted() -> None:
    assert load_target("cpu:x86-64-v3@64").model.cores == 64


def test_a_machine_cannot_compute_with_more_threads_than_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = json.loads(processor("mine", Host(), cores=2).to_json())
    document["machine"]["threads"] = 3
    with pytest.raises(TargetError, match="threads: 3 on 2 cores"):
        read(document, where="t.json")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    require_processor(with_threads(processor("mine", Host()), 2))
    with pytest.raises(TargetError, match="mine@3: 3 threads, and this process may use 2 cores"):
        require_processor(with_threads(processor("mine", Host()), 3))


def test_a_processor_that_can_do_more_names_the_instruction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tilefarm.processors.flags_here", lambda: ["sse4_2", "avx2"])
    more = processor("more", Host(cpu="x86-64", features="+avxvnni"))
    with pytest.raises(TargetError, match="more: its programs need avx_vnni, which this machine"):
        require_processor(more)


def test_no_two_targets_with_names_are_the_same() -> None:
    assert NAMES[:2] == ["cpu", "cpu:x86-64-v4"]
    assert len({target.digest for target in built_in_targets().values()}) == len(built_in_targets())


def test_there_is_one_machine_and_no_other_beside_it() -> None:
    twice = replace(load_target("cpu"), vta=TARGETS["sim"].geometry)
    assert impossibilities(twice) == ["vta: this machine is no VTA"]


def test_an_unknown_name_lists_processors_too() -> None:
    with pytest.raises(TargetError) as refused:
        load_target("cpu:mine")
    assert "cpu, cpu:x86-64-v4" in refused.value.hint
