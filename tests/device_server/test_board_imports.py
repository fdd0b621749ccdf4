"""What a board's server needs besides the standard library: gRPC, protobuf, little around them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASES = (ROOT, ROOT / "proto")
NEEDED = {"google", "grpc", "grpc_health", "grpc_reflection", "prometheus_client"}
"""Top-level packages of grpcio, protobuf, and of what is plain Python and made for them."""


def file_of(module: str) -> Path | None:
    for base in BASES:
        path = base.joinpath(*module.split("."))
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


def imports(file: Path) -> Iterator[str]:
    """Modules, and what may be modules, that a file imports anywhere."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def reached(*roots: str) -> tuple[set[str], set[str]]:
    """Our modules that are reached from some of them, and the packages of others."""
    ours, others, open_ = set[str](), set[str](), [*roots]
    while open_:
        module = open_.pop()
        file = file_of(module)
        if file is None:
            package = module.split(".")[0]
            if package not in ("tilefarm", "device_server", *sys.stdlib_module_names):
                others.add(package)
        elif module not in ours:
            ours.add(module)
            open_ += imports(file)
    return ours, others


def test_tracker_and_device_need_grpc_and_protobuf_only() -> None:
    ours, others = reached("device_server.__main__", "device_server.device.command")
    rooms = {module.split(".")[1] for module in ours if module.startswith("device_server.")}
    assert rooms >= {"device", "runner", "tracker", "vta"}
    assert "device_server.device.self_test" in ours
    assert others <= NEEDED
    assert {module.split(".")[0] for module in ours} == {"device_server", "tilefarm"}


def test_what_is_for_tools_is_not_reached() -> None:
    ours, _ = reached("device_server.__main__", "device_server.device.command")
    assert not {m for m in ours if m.startswith("device_server.vta.programs")}
    assert "device_server.vta.library.library" not in ours
