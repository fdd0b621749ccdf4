"""Processors as targets: what Linux says of one becomes LLVM's names, its level, its caches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.errors import TargetError
from tilefarm.processors import AARCH64, ARMV7, X86_64, caches_of, host_of, processor
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
