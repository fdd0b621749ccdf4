"""What the runtime's tests share: a blob folder, compiled C kernels, a runner."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.built import no_simulator, require
from tilefarm.digest import Digest
from tilefarm.target import TARGETS

from device_server.runner.runner import Runner, RunnerLimits
from device_server.vta.library.library import VtaLibrary

KERNELS = Path(__file__).parent / "kernels"


class Blobs:
    """Contents by digest, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> Digest:
        digest = Digest.of(content)
        (self._folder / digest.hex).write_bytes(content)
        return digest

    def path(self, digest: Digest) -> Path:
        return self._folder / digest.hex


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
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
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
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
