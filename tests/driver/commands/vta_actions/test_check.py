"""`tilefarm vta check`: silence for what agrees, a line for what does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kit.kernels.programs import DENSE, DENSE_CYCLES, dense_program, stream
from kit.shared import shared_folder
from tilefarm.target import BusTiming, Target, VtaConfig

from device_server.vta.library.library import VtaLibrary
from device_server.vta.programs.program import Regions

from .conftest import Vta

Save = Callable[..., Path]


def test_a_program_that_agrees_is_only_counted(vta: Vta, save: Save) -> None:
    code, out, err = vta("check", save())
    assert (code, out, err) == (0, "1 of 1 program agrees\n", "")


def test_every_program_of_a_folder_is_checked(vta: Vta, save: Save, tmp_path: Path) -> None:
    save("a")
    save("b", cycles=DENSE_CYCLES + 1)
    save("c", accumulator_writes=13)
    code, out, _ = vta("check", tmp_path)
    assert code == 1
    assert out.splitlines() == [
        f"{tmp_path / 'b.npz'}: cycles 168, expected 169",
        f"{tmp_path / 'c.npz'}: accumulator writes 12, expected 13",
        "1 of 3 programs agrees",
    ]


def test_wrong_memory_is_told_by_its_first_byte(vta: Vta, save: Save) -> None:
    program = dense_program()
    assert program.after is not None
    content = program.after.content.copy()
    content[[3, 9]] ^= 1
    path = save(after=Regions(program.after.places, content))
    code, out, _ = vta("check", path)
    assert code == 1
    first = f"{content[3] ^ 1}, expected {content[3]}"
    assert f"2 DRAM bytes differ, first at 0x403: {first}" in out


def test_a_timeline_says_where_time_went_another_way(
    vta: Vta, save: Save, library: VtaLibrary
) -> None:
    program = dense_program()
    library.configure(program.target)
    spans = library.run_stream(program.instructions, program.image(), timeline=True).spans
    assert spans is not None
    spans[6:] += 5
    code, out, _ = vta("check", save(cycles=DENSE_CYCLES + 5, spans=spans))
    assert code == 1
    assert "(first at instruction 6 store store.out: " in out


def test_spans_alone_decide_nothing(vta: Vta, save: Save) -> None:
    code, _, _ = vta("check", save(spans=np.zeros((9, 2), np.int64)))
    assert code == 0


def test_a_program_that_promises_nothing_does_not_agree(vta: Vta, save: Save) -> None:
    code, out, _ = vta("check", save(cycles=None, after=None))
    assert code == 1
    assert "promises neither cycles nor memory" in out


def test_the_answer_as_json(vta: Vta, save: Save) -> None:
    good, bad = save("good"), save("bad", cycles=1)
    code, out, _ = vta("check", good, bad, "--json")
    document = json.loads(out)
    assert code == 1
    assert document["agree"] == 1
    assert [p["file"] for p in document["programs"]] == [str(good), str(bad)]
    assert document["programs"][1] == {
        "file": str(bad),
        "usable": True,
        "cycles": DENSE_CYCLES,
        "expected_cycles": 1,
        "problems": ["cycles 168, expected 1"],
        "remedy": "",
    }


TARGETS = {
    "short bursts": Target(name="t", timing=BusTiming(log_burst_beats=4)),
    "wide bus": Target(name="t", timing=BusTiming(bus_nbytes=32)),
    "small buffers": Target(name="t", vta=VtaConfig(log_inp_buff_size=12, log_acc_buff_size=14)),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_programs_run_on_the_accelerator_they_name(vta: Vta, save: Save, target: Target) -> None:
    code, out, _ = vta("check", save(program=dense_program(target=target)))
    assert code == 0, out


BAD_STREAMS = {
    "no FINISH": (DENSE.replace("8 compute finish", ""), "instruction 7", "FINISH"),
    "FINISH twice": (DENSE + "9 compute finish", "instruction 8", "FINISH before the end"),
    "a token that nobody gives": (DENSE.replace("push=store", ""), "instruction 6", "deadlock"),
    "a token that nobody takes": (
        DENSE.replace("4 stride=4 pop=compute push=compute", "4 stride=4 pop=compute").replace(
            "7 compute nop.load.uop pop=store", "7 store nop.store.out push=compute"
        ),
        "instruction 7",
        "nobody takes 1 of the tokens store->compute",
    ),
    "no turns": (DENSE.replace("=4x1", "=0x1"), "instruction 1", "zero trip count"),
    "no micro-ops": (DENSE.replace("uops=0..1", "uops=1..1"), "instruction 1", "zero trip count"),
    "DRAM": (DENSE.replace("dram=0x40", "dram=0x4000"), "instruction 6", "bytes 0x40000..0x4003f"),
    "SRAM": (DENSE.replace("sram=0 dram=0x10 y=1 x=4", "sram=2046 dram=0x10 y=1 x=4"),
             "instruction 2", "INP elements 2046..2049"),
    "accumulator": (DENSE.replace("dst=1,0", "dst=1000,0"), "instruction 1", "ACC index 3000"),
    "an unordered access": (DENSE.replace(" pop=load", ""), "instruction 4", "no token orders"),
    "a minute of micro-ops": (
        DENSE.replace("=4x1 dst=1,0 src=1,0 wgt", "=16383x16383 dst=0,0 src=0,0 wgt")
        .replace("uops=0..1", "uops=0..99"),
        "instruction 4", "micro-ops",
    ),
    "an opcode": (DENSE + "9 compute unknown low=0x5 high=0x0", "instruction 9", "opcode 5"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "where", "why"), BAD_STREAMS.values(), ids=BAD_STREAMS.keys())
@pytest.mark.parametrize("action", ["check", "run"])
def test_a_bad_stream_is_one_line(
    vta: Vta, save: Save, action: str, text: str, where: str, why: str
) -> None:
    path = save(program=replace(dense_program(), instructions=stream(text), cycles=1))
    code, out, err = vta(action, path)
    assert code == 2
    told = (out if action == "check" else err).splitlines()[0]
    assert str(path) in told
    assert where in told
    assert why in told


def test_other_programs_are_checked_after_one_that_cannot_be_read(
    vta: Vta, save: Save, tmp_path: Path
) -> None:
    cut = save("cut")
    cut.write_bytes(cut.read_bytes()[:200])
    save("good")
    code, out, _ = vta("check", tmp_path)
    assert code == 2
    assert out.splitlines()[0].startswith(f"{cut}: is not an .npz archive, or is cut short")
    _, remedy, sums = out.splitlines()
    assert remedy.startswith("  try: `tilefarm vta dump`")
    assert sums == "1 of 2 programs agrees"


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_nothing_to_check_is_a_mistake(vta: Vta, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = vta("check", tmp_path / name)
    assert code == 2
    assert err.startswith("tilefarm vta check: ")
    assert name in err


_SHARED = shared_folder()


@pytest.mark.skipif(_SHARED is None, reason="no folder shared next to the repository")
def test_all_golden_vectors_agree(vta: Vta) -> None:
    assert _SHARED is not None
    code, out, _ = vta("check", _SHARED / "rtl-vectors")
    assert (code, out) == (0, "165 of 165 programs agree\n")
