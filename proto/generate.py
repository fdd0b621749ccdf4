"""Generates the protocol's Python code with the pinned grpcio-tools: `python proto/generate.py`.

With `--check` it only says whether what is here is fresh. Messages only: services are a table of
methods in `tilefarm.rpc.methods`, typed end to end. Code of newer generators refuses older protobuf
runtimes, hence the pin; a test proves that it is fresh.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

GENERATOR_VERSION: Final = "1.81.1"
SOURCES: Final = ("tilefarm/v1/device.proto", "tilefarm/v1/tracker.proto")
HERE: Final = Path(__file__).resolve().parent


def generate(into: Path) -> list[Path]:
    """Writes the messages' modules and their type stubs below `into`; gives their paths.

    Raises:
        RuntimeError: another version of grpcio-tools is installed, or a schema does not compile.
    """
    version = importlib.metadata.version("grpcio-tools")
    if version != GENERATOR_VERSION:
        raise RuntimeError(f"grpcio-tools is {version}, not {GENERATOR_VERSION}")
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{HERE}"]
    ended = subprocess.run([*protoc, f"--python_out={into}", f"--pyi_out={into}", *SOURCES])
    if ended.returncode:
        raise RuntimeError("protoc failed; its reason is above")
    stems = [into / source.removesuffix(".proto") for source in SOURCES]
    return [
        stem.with_name(f"{stem.name}_pb2.{suffix}") for stem in stems for suffix in ("py", "pyi")
    ]


def stale(made: list[Path], folder: Path) -> list[Path]:
    """Of files that were made below a folder: those whose like here is another, or absent."""
    names = [path.relative_to(folder) for path in made]
    return [
        name
        for name in names
        if not (HERE / name).exists() or (HERE / name).read_bytes() != (folder / name).read_bytes()
    ]


def main(arguments: list[str]) -> int:
    """Generate, or check; the exit code."""
    if arguments == ["--check"]:
        with tempfile.TemporaryDirectory() as folder:
            found = stale(generate(Path(folder)), Path(folder))
        for path in found:
            sys.stderr.write(f"{path} is not what its schema gives; run proto/generate.py\n")
        return 1 if found else 0
    for path in generate(HERE):
        sys.stdout.write(f"{path.relative_to(HERE)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
