"""What the tests of devices, runners and VTA share: a farm, blobs, compiled C kernels, a runner."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.built import no_simulator, require
from kit.children.blobs import Blobs
from kit.farm.in_process import Farm
from kit.farm.watched_device import Bed
from tilefarm.digest import Digest
from tilefarm.target import TARGETS

import device_server
from device_server.runner.runner import Runner, RunnerLimits
from device_server.vta.library.library import VtaLibrary

KERNELS = Path(__file__).parent / "runner" / "kernels"
HEADERS = Path(device_server.__file__).parent / "vta" / "runtime" / "include"


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


@pytest.fixture
def bed(farm: Farm) -> Bed:
    """A farm whose one device is watched."""
    return Bed(farm)


@pytest.fixture(scope="session")
def built() -> None:
    """Whoever needs the runtime is skipped where nobody has built it."""
    require(no_simulator)


@pytest.fixture(scope="session")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Blobs:
    return Blobs(tmp_path_factory.mktemp("blobs"))


@pytest.fixture(scope="session")
def compiled(blobs: Blobs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Digest]:
    """Every C file of `kernels` as a shared object: digest by name."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("objects")
    digests = {}
    for source in sorted(KERNELS.glob("*.c")):
        to = folder / f"{source.stem}.so"
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-I", str(HEADERS)]
        subprocess.run([compiler, *flags, "-o", to, source], check=True)
        digests[source.stem] = blobs.put(to.read_bytes())
    return digests


@pytest.fixture
def runner() -> Iterator[Runner]:
    limits = RunnerLimits(memory_nbytes=256 << 20)
    with Runner(target=TARGETS["sim"], limits=limits, device="test") as made:
        yield made


@pytest.fixture(scope="session")
def library() -> VtaLibrary:
    return VtaLibrary()
