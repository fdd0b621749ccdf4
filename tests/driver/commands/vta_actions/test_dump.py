"""`tilefarm vta dump`: compiled layers as programs that keep their promise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tilefarm.target import TARGETS, Target, VtaConfig

from compile_worker.space import generate
from device_server.vta.programs.program import read_program
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.program.vta.layers import RESNET18, Convolution, predicted_best

from .conftest import Vta

SMALL = "16,32,6,6,3,1,1"


def test_a_convolution_becomes_a_program_that_agrees(vta: Vta, tmp_path: Path) -> None:
    code, out, _ = vta("dump", "--conv", SMALL, "--out", tmp_path / "made")
    file = tmp_path / "made" / "conv_16_32_6_6_3_1_1.npz"
    assert code == 0
    program = read_program(file)
    assert out == f"{file}: {len(program.instructions)} instructions, {program.cycles} cycles\n"
    assert program.meta["gemm_uops"] == 2 * 9 * 36
    assert program.spans is not None
    assert vta("check", tmp_path / "made")[:2] == (0, "1 of 1 program agrees\n")


def test_equal_dumps_make_equal_files(vta: Vta, tmp_path: Path) -> None:
    contents = set()
    for name in ("a", "b"):
        vta("dump", "--conv", SMALL, "--seed", "4", "--out", tmp_path / name)
        (file,) = (tmp_path / name).iterdir()
        contents.add(file.read_bytes())
    assert len(contents) == 1


def test_the_image_has_no_large_holes(vta: Vta, tmp_path: Path) -> None:
    vta("dump", "--conv", SMALL, "--out", tmp_path)
    (file,) = tmp_path.iterdir()
    assert read_program(file).dram_nbytes < 1 << 18


ACCELERATORS = {
    "small buffers": VtaConfig(log_wgt_buff_size=17, log_acc_buff_size=16),
    "batch 2": VtaConfig(log_batch=1),
    "4x8": VtaConfig(log_batch=2, log_block=3, log_wgt_buff_size=15),
    "block 32": VtaConfig(
        log_block=5, log_inp_buff_size=16, log_wgt_buff_size=19, log_acc_buff_size=18
    ),
}


@pytest.mark.parametrize("config", ACCELERATORS.values(), ids=ACCELERATORS.keys())
def test_another_accelerator_is_named_in_the_program(
    vta: Vta, tmp_path: Path, config: VtaConfig
) -> None:
    file, where = tmp_path / "other.json", tmp_path / "made"
    file.write_text(Target(name="other", vta=config).to_json())
    code, _, err = vta("dump", "--conv", SMALL, "--target", file, "--out", where)
    assert code == 0, err
    (program,) = where.iterdir()
    assert read_program(program).target.geometry == config
    assert vta("check", where)[0] == 0


def test_layers_of_a_network(vta: Vta, tmp_path: Path) -> None:
    network = ("--model", DEMO_MODEL, "--calibrate", DEMO_CALIBRATION)
    code, out, err = vta("dump", *network, "--workload", "dense", "--out", tmp_path / "made")
    assert code == 0, err
    assert all("dense" in line for line in out.splitlines())
    assert vta("check", tmp_path / "made")[0] == 0


def test_a_point_and_its_trace_make_the_same_program(vta: Vta, tmp_path: Path) -> None:
    target = TARGETS["sim"]
    generated = generate(Convolution.parse(SMALL).workload(target), target)
    point = predicted_best(generated, 1)
    (tmp_path / "point.json").write_text(json.dumps(point))
    (tmp_path / "trace.json").write_text(generated.trace(point).to_json())
    streams = []
    for kind in ("point", "trace"):
        where = tmp_path / kind
        code, _, err = vta(
            "dump", "--conv", SMALL, f"--{kind}", tmp_path / f"{kind}.json", "--out", where
        )
        assert code == 0, err
        (file,) = where.iterdir()
        streams.append(read_program(file).instructions)
    np.testing.assert_array_equal(streams[0], streams[1])


def test_the_predicted_schedule_is_not_slower_than_the_plain_one(vta: Vta, tmp_path: Path) -> None:
    cycles = []
    for name, words in (("plain", ()), ("best", ("--predicted",))):
        vta("dump", "--conv", "16,16,8,8,3,1,1", *words, "--out", tmp_path / name)
        (file,) = (tmp_path / name).iterdir()
        cycles.append(read_program(file).cycles or 0)
    assert cycles[1] < 0.8 * cycles[0]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "one of the arguments --conv --model is required"),
        (("--conv", "1,2"), "--conv 1,2: seven numbers are needed"),
        (("--conv", "1,2,3,4,5,6,x"), "seven numbers are needed"),
        (("--conv", "16,16,4,4,3,0,1"), "STRIDE = 0 is not in 1..8192"),
        (("--conv", "16,16,4,4,7,1,0"), "the window is larger than the padded image"),
        (("--conv", SMALL, "--model", "m.onnx"), "not allowed with argument"),
        (("--conv", SMALL, "--target", "nosuch"), "unknown target 'nosuch'"),
        (("--conv", SMALL, "--point", "/no/such.json"), "/no/such.json: cannot be read"),
        (("--model", str(DEMO_MODEL)), "digits needs --calibrate DATA.npz"),
        (("--model", "no.onnx", "--calibrate", "no.npz"), "no.onnx"),
    ],
)
def test_impossible_options_are_told(
    vta: Vta, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    code, _, err = vta("dump", *words, "--out", tmp_path / "made")
    assert code == 2
    assert why in err.splitlines()[0]
    assert not (tmp_path / "made").exists() or not list((tmp_path / "made").iterdir())


@pytest.mark.parametrize(
    ("option", "text", "why"),
    [
        ("--point", "{", "not JSON"),
        ("--point", "[1]", "a point is a JSON object of integers"),
        ("--point", '{"tile_co": true}', "a point is a JSON object of integers"),
        ("--point", '{"tile_zz": 1}', "'tile_zz' is no variable"),
        ("--point", '{"tile_co": 77}', "the point breaks domain:tile_co"),
        ("--trace", "{}", "not a trace"),
        ("--trace", '[["fly", 1]]', "does not compile"),
    ],
)
def test_a_schedule_that_is_wrong_is_told(
    vta: Vta, tmp_path: Path, option: str, text: str, why: str
) -> None:
    file = tmp_path / "schedule.json"
    file.write_text(text)
    code, _, err = vta("dump", "--conv", SMALL, option, file, "--out", tmp_path / "made")
    assert code == 2
    assert why in err.splitlines()[0]


def test_shapes_of_resnet() -> None:
    macs = {name: layer.macs for name, layer in RESNET18.items()}
    assert macs["C2"] == macs["C5"] == macs["C8"] == macs["C11"] == 451584 * 256
    assert macs["C4"] == macs["C7"] == macs["C10"] == 25088 * 256
    assert macs["C1"] == 118013952
