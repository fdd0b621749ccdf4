"""Generates the protocol's Python code with the pinned grpcio-tools: `python proto/generate.py`.

Messages only: the services are a table of methods in `tilefarm.methods`, typed end to end. Code of
newer generators refuses older protobuf runtimes, hence the pin; a test proves that it is fresh.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
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


if __name__ == "__main__":
    for path in generate(HERE):
        sys.stdout.write(f"{path.relative_to(HERE)}\n")
