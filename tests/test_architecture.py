"""The shape of the code is a test: layers, doors to heavy libraries, captions, bans."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from grimp import build_graph
from importlinter.application.use_cases import FAILURE, lint_imports
from importlinter.configuration import configure

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("proto/tilefarm", "driver", "compile_worker", "tuner", "device_server")

DOORS = {
    "PIL": {"driver/benchmarks/zoo/images.py"},
    "cryptography": {"driver/farm/authority.py", "driver/farm/signing.py"},
    "llvmlite": {"compile_worker/codegen"},
    "ray": {
        "compile_worker/tasks.py",
        "driver/farm/compiling/cluster.py",
        "driver/farm/compiling/ray_child.py",
    },
    "xgboost": {"tuner/xgb_model.py"},
    "ctypes": {
        "device_server/vta/library",
        "device_server/server/lifetime.py",
        "driver/farm/compiling/orphan_reaper.py",
        "driver/benchmarks/processor",
        "driver/memory/native",
        "driver/tune/freed_memory.py",
    },
    "onnxruntime": {"driver/program/onnx_runtime.py"},
    "onnx": {"driver/network/frontend", "driver/network/examples"},
    "sqlite3": {"tuner/database.py", "device_server/tracker/state_file.py"},
    "grpc_health": {"proto/tilefarm/rpc/health.py"},
    "grpc_reflection": {"proto/tilefarm/rpc/reflection.py"},
    "prometheus_client": {"proto/tilefarm/watch/prometheus.py"},
    "grpc": {
        "proto/tilefarm/rpc/listening.py",
        "proto/tilefarm/rpc/caller.py",
        "proto/tilefarm/rpc/serving.py",
        "proto/tilefarm/rpc/status.py",
    },
}
"""The only places that may import a heavy library: one door each, with our own face behind it."""


def sources() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "_pb2" not in path.name
    ]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imported_modules(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return frozenset(found)


def is_under(path: Path, places: set[str]) -> bool:
    name = path.relative_to(ROOT).as_posix()
    return any(name == place or name.startswith(place + "/") for place in places)


def test_imports_run_one_way() -> None:
    configure()
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), cache_dir=None) != FAILURE


@pytest.mark.parametrize("package", [Path(place).name for place in PACKAGES])
def test_rooms_do_not_import_one_another_in_a_circle(package: str) -> None:
    """Neither those of a package, nor the folders and modules of any room."""
    graph = build_graph(package, cache_dir=None)
    below: dict[str, dict[str, set[str]]] = {}
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            house, user, used = parting(importer, imported)
            if user and used:
                below.setdefault(house, {}).setdefault(user, set()).add(used)
    assert below
    circles = {house: circle for house, rooms in below.items() if (circle := circle_in(rooms))}
    # There a rule of an operator asks for a rule of its integers, and the other way round.
    circles.pop("driver.network.frontend", None)
    assert not circles


def parting(importer: str, imported: str) -> tuple[str, str, str]:
    """The folder that two modules share, and where in it each of them is."""
    one, other = importer.split("."), imported.split(".")
    shared = next(
        (depth for depth, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return ".".join(one[:shared]), ".".join(one[shared:][:1]), ".".join(other[shared:][:1])


def circle_in(rooms: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_a_circle_of_rooms_is_found() -> None:
    assert parting("driver.a.b.c", "driver.a.d") == ("driver.a", "b", "d")
    assert parting("driver.a", "driver.a.d") == ("driver.a", "", "d")
    assert circle_in({"a": {"b"}, "b": {"c"}}) == []
    assert set(circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


MOST_ROOMS = 10


def test_the_driver_has_so_few_rooms_that_one_can_name_them() -> None:
    rooms = [each.parent for each in (ROOT / "driver").glob("*/__init__.py")]
    assert 1 < len(rooms) <= MOST_ROOMS, sorted(room.name for room in rooms)


def test_tests_are_in_the_rooms_of_what_they_test() -> None:
    astray = [
        str(folder.relative_to(ROOT))
        for folder in sorted((ROOT / "tests" / "driver").rglob("*/"))
        if any(folder.glob("test_*.py"))
        and not (ROOT / folder.relative_to(ROOT / "tests")).is_dir()
    ]
    assert not astray


@pytest.mark.parametrize("library", sorted(DOORS))
def test_a_heavy_library_has_one_door(library: str) -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if any(m.split(".")[0] == library for m in imported_modules(path))
        and not is_under(path, DOORS[library])
    }
    assert not users, f"{library} may be imported only in {sorted(DOORS[library])}"


def test_generated_messages_are_touched_by_what_makes_records_of_them_alone() -> None:
    users = {
        path.relative_to(ROOT)
        for path in sources()
        if any(module.startswith("tilefarm.v1") for module in imported_modules(path))
    }
    assert users
    assert all(path.match("proto/tilefarm/rpc/wire.py") for path in users), users


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(p.relative_to(ROOT)) for p in sources() if not ast.get_docstring(parsed(p))]
    assert not silent


def test_nothing_is_pickled_or_evaluated() -> None:
    banned = re.compile(r"\b(import|from) (pickle|cloudpickle|marshal|shelve)\b|allow_pickle=True")
    assert not [str(p.relative_to(ROOT)) for p in sources() if banned.search(p.read_text())]


def test_the_environment_is_not_read_in_the_open() -> None:
    allowed = {
        "proto/tilefarm/quiet.py",
        "driver/farm/compiling/cluster.py",
        "driver/farm/compiling/ray_child.py",
        "device_server/server/supervisor.py",
        "proto/tilefarm/interpreter.py",
    }
    readers = [
        str(p.relative_to(ROOT))
        for p in sources()
        if re.search(r"os\.(environ|getenv)", p.read_text()) and not is_under(p, allowed)
    ]
    assert not readers


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty_words = {"util", "utils", "helper", "helpers", "common", "base", "manager", "misc"}
    assert not [str(p.relative_to(ROOT)) for p in sources() if p.stem in empty_words]


def test_python_processes_are_started_in_one_way() -> None:
    """`tilefarm.interpreter` keeps the current folder out of what they import."""
    door = "proto/tilefarm/interpreter.py"
    started = [
        str(path.relative_to(ROOT))
        for path in sources()
        if re.search(r"\[\s*sys\.executable", path.read_text())
    ]
    assert not started, f"use python_command of {door}"
    spawning = {str(p.relative_to(ROOT)) for p in sources() if '"spawn"' in p.read_text()}
    shielded = {str(p.relative_to(ROOT)) for p in sources() if "shield_children()" in p.read_text()}
    assert spawning <= shielded, f"call shield_children of {door} first"


def test_threads_are_started_in_one_way() -> None:
    """`tilefarm.threads` sees to it that somebody hears of their death.

    What is raised in an executor comes out of `result()`, which is called where it was given.
    """
    executors = {
        "driver/benchmarks/isolated.py",
        "driver/network/graph/parts.py",
        "driver/jobs/nightly/night/night_run.py",
        "device_server/runner/children.py",
    }
    bare = [
        str(path.relative_to(ROOT))
        for path in sources()
        if (
            re.search(
                r"threading\.(Thread|Timer)\(|start_new_thread|PoolExecutor\(", path.read_text()
            )
            and path.relative_to(ROOT).as_posix() not in {"proto/tilefarm/threads.py", *executors}
        )
    ]
    assert not bare, "use start_thread of proto/tilefarm/threads.py"


def test_tasks_of_event_loops_are_started_where_somebody_waits_for_them() -> None:
    waited_for = {
        "proto/tilefarm/background_tasks.py",
        "device_server/server/lifetime.py",  # a supervisor misses its signs of life
        "device_server/device/idempotency_cache.py",
        "device_server/tenancy.py",  # which waits itself for what it may have to cancel
        "driver/benchmarks/farm/clients.py",
        "proto/tilefarm/rpc/listening.py",  # servers from before may take hours to end
    }
    loose = [
        str(path.relative_to(ROOT))
        for path in sources()
        if re.search(r"create_task\(|ensure_future\(", path.read_text())
        and path.relative_to(ROOT).as_posix() not in waited_for
    ]
    assert not loose, "use `until` of proto/tilefarm/background_tasks.py"
