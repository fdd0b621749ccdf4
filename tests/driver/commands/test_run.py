"""`tilefarm run`: what does not fit is refused before a device is started."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tilefarm.digest import Digest
from tilefarm.errors import InfraError
from tilefarm.target import TARGETS

import device_server.vta.library.native
from driver import cli
from driver.network.graph.grid import Grid
from driver.program.deployed import read_program
from driver.program.model import NetworkProgram, Parameter
from driver.program.user_passes import ProgramPass
from driver.tune.output import OutputFolder

PROGRAM = NetworkProgram(
    name="two",
    target=TARGETS["sim"],
    entry="network",
    code=b"\x7fELF",
    constants=bytes(256),
    arena_nbytes=0,
    inputs=(
        Parameter(name="image", shape=(1, 3, 4, 4), axes=(0, 3, 1, 2), scale=0.5),
        Parameter(name="mask", shape=(1, 8), axes=(0, 1)),
    ),
    outputs=(Parameter(name="score", shape=(1, 10), grid=Grid(0.25, 3, "uint4")),),
    passes=(ProgramPass(name="tidy", plugin="passes.py", digest=Digest.of(b"passes")),),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = OutputFolder(tmp_path)
    out.write_program(PROGRAM, {"tilefarm": "test"})
    np.savez(tmp_path / "x.npz", image=np.zeros((2, 4, 4, 3)), mask=np.zeros((2, 8)))
    return out.program


@pytest.fixture
def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*words: str | Path, data: str = "x.npz", code: int = 2) -> str:
        command = ["run", folder, "--input", folder.parent / data, *words]
        assert cli.main(list(map(str, command))) == code
        error = capsys.readouterr().err
        assert error.startswith("tilefarm run: ")
        assert error.splitlines()[-1].startswith("  try: ")
        return error

    return run


def test_the_manifest_says_everything(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    files = {p.name: Digest.of(p.read_bytes()).hex for p in folder.iterdir()}
    del files["manifest.json"]
    assert manifest["files"] == files
    assert sorted(files) == ["README.txt", "network.so", "run.c", "run.py", "weights.bin"]
    assert manifest["buffers"][0] == {"name": "arena", "role": "scratch", "nbytes": 256}
    assert manifest["inputs"][0] == {
        "name": "image",
        "dtype": "float32",
        "shape": [1, 3, 4, 4],
        "axes": [0, 3, 1, 2],
        "scale": 0.5,
        "grid": None,
    }
    assert manifest["outputs"][0]["grid"] == {
        "dtype": "uint4",
        "scale": 0.25,
        "zero": 3,
        "lowest": 0,
        "highest": 15,
        "numpy": "uint8",
    }
    assert read_program(folder) == PROGRAM
    readme = (folder / "README.txt").read_text()
    assert "image  [1, 3, 4, 4], axes [0, 3, 1, 2] of the model's file, scale 0.5" in readme
    assert "score  [1, 10]; of the model's uint4 with scale 0.25 and zero point 3" in readme
    assert "4  score  40 bytes, output" in readme
    digest = Digest.of(b"passes")
    assert manifest["lower_with"] == [["tidy", digest.hex]]
    assert manifest["plugins"] == [["passes.py", digest.hex]]
    assert f"Its kernels were lowered with tidy of passes.py ({digest.short})." in readme


def test_a_number_changed_in_the_manifest(folder: Path, refused: Callable[..., str]) -> None:
    file = folder / "manifest.json"
    file.write_text(file.read_text().replace('"nbytes": 192', '"nbytes": 191'))
    assert "manifest.json: damaged" in refused()


def test_damaged_weights(folder: Path, refused: Callable[..., str]) -> None:
    (folder / "weights.bin").write_bytes(bytes(255))
    assert "weights.bin: damaged" in refused()


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"picture": np.zeros((2, 4, 4, 3))}, "no array for input 'image'"),
        ({"image": np.zeros((2, 5, 4, 3)), "mask": np.zeros((2, 8))}, "[2, 5, 4, 3]"),
        ({"image": np.zeros((2, 4, 4, 3)), "mask": np.full((2, 8), "a")}, "has type <U1"),
    ],
    ids=["name", "shape", "dtype"],
)
def test_arrays_that_do_not_fit(
    arrays: dict[str, np.ndarray], what: str, folder: Path, refused: Callable[..., str]
) -> None:
    np.savez(folder.parent / "bad.npz", allow_pickle=False, **arrays)
    error = refused(data="bad.npz")
    assert what in error
    assert "two takes 'image' float32 [samples, 4, 4, 3], 'mask' float32 [samples, 8]" in error


def test_a_program_of_another_target(refused: Callable[..., str]) -> None:
    error = refused("--target", "sim-de10")
    assert "two was compiled for sim (target " in error
    assert "not for sim-de10" in error


def test_no_library(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Path:
        raise InfraError("the library is not built", "build it")

    monkeypatch.setattr(device_server.vta.library.native, "find_library", absent)
    assert "the library is not built" in refused(code=InfraError("").exit_code)


def test_a_program_without_entries_for_its_layers_has_no_profile(
    refused: Callable[..., str],
) -> None:
    assert "program two is of an older version" in refused("--profile")


def test_the_inputs_are_never_lost_under_the_outputs(
    folder: Path, refused: Callable[..., str]
) -> None:
    data = folder.parent / "x.npz"
    before = data.read_bytes()
    (folder.parent / "link.npz").symlink_to(data)
    for out in ("x.npz", "link.npz"):
        assert "which would be lost" in refused("--out", folder.parent / out)
    assert data.read_bytes() == before
