"""What a version wrote, kept to be read by later ones: messages, schemas, files.

`PYTHONPATH=tests:. python -m tests.tilefarm.write_corpus` writes the folder of this version of the
protocol anew.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor, FileDescriptor
from kit.messages.specimens import codecs, document, filled
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.measurement import DeviceClock, Status, Trial, WallTime
from tilefarm.rpc.tracker_calls import Register
from tilefarm.rpc.version import PROTOCOL
from tilefarm.target import TARGETS
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tokens import TokenEntry, read_table, table_text
from tilefarm.v1 import device_pb2, tracker_pb2
from tilefarm.watch.audit import AuditEntry, AuditFile, read_audit

from device_server.tracker.state_file import TrackerState
from device_server.tracker.table_state import AdministrativeState, Holding, TableChanges, TableState
from driver.network.graph.grid import Grid
from driver.program.deployed import read_program
from driver.program.folder import CODE_FILE, CONSTANTS_FILE, MANIFEST_FILE
from driver.program.model import NetworkProgram, Parameter
from driver.tune.output import OutputFolder
from tuner.trial_store import TrialPosition, TrialStore

CORPUS: Final = Path(__file__).resolve().with_name("corpus")
PRESENT: Final = CORPUS / str(PROTOCOL)
MESSAGES: Final = "messages.json"
SCHEMA: Final = "schema.json"
RECORDS: Final = "files.json"

_DEVICE: Final = DeviceInfo(
    name="board1",
    address="10.0.0.2:9191",
    target=TARGETS["sim"].digest,
    runtime="build",
    sandbox="rlimits",
    epoch="epoch-1",
    labels=(("site", "lab"),),
    clock=DeviceClock.SECONDS,
    known_seconds=1e-5,
    known_spread=0.02,
    power="not on battery, frequency governor performance",
)
_TRIAL: Final = Trial(
    workload=Digest.of(b"workload"),
    trace=Digest.of(b"trace"),
    point=(("tile", 4),),
    status=Status.OK,
    cycles=1234,
    wall_time=WallTime(
        minimum_seconds=1e-6,
        p10_seconds=2e-6,
        median_seconds=3e-6,
        p90_seconds=4e-6,
        calls=500,
        regions=9,
        rejected=1,
        preemptions=3,
        stolen_seconds=0.02,
        begin_mhz=3400.0,
        end_mhz=2100.0,
    ),
    seconds=(0.25,),
    artifact=Digest.of(b"artifact"),
    device="board1",
    proposer="random",
    spans=(("run", 1.0, 2.0),),
)
_PROGRAM: Final = NetworkProgram(
    name="small",
    target=TARGETS["sim"],
    entry="network",
    code=b"\x7fELF code",
    constants=b"constants",
    arena_nbytes=1024,
    inputs=(Parameter(name="x", shape=(1, 3, 4, 4), axes=(0, 1, 2, 3), scale=0.5),),
    outputs=(Parameter(name="y", shape=(1, 2), grid=Grid(0.25, 3, "uint8")),),
)


def messages() -> dict[str, list[dict[str, Any]]]:
    """For every codec: messages with all fields set, and the records that they are."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, codec in codecs().items():
        contents = [message.SerializeToString() for message in filled(codec.message)]
        rows[name] = [
            {"bytes": content.hex(), "record": document(codec.decode(content))}
            for content in contents
        ]
    return rows


def schema() -> dict[str, Any]:
    """Numbers, names and types of all fields, enum values and methods."""
    files: tuple[FileDescriptor, ...] = (device_pb2.DESCRIPTOR, tracker_pb2.DESCRIPTOR)
    return {
        "messages": {
            message.full_name: {str(f.number): _field(f) for f in message.fields}
            for file in files
            for message in file.message_types_by_name.values()
        },
        "enums": {
            enum.full_name: {str(value.number): value.name for value in enum.values}
            for file in files
            for enum in file.enum_types_by_name.values()
        },
        "methods": {
            f"/{service.full_name}/{rpc.name}": [
                ("stream " if rpc.client_streaming else "") + rpc.input_type.full_name,
                ("stream " if rpc.server_streaming else "") + rpc.output_type.full_name,
            ]
            for file in files
            for service in file.services_by_name.values()
            for rpc in service.methods
        },
    }


def write_files(folder: Path) -> None:
    """A file of every kind that outlives the process that wrote it."""
    _write_tracker_state(folder / "tracker.sqlite")
    with TrialStore(folder / "records.sqlite") as store:
        store.begin_run("run-1", {"seed": 3}, begun=1.5)
        store.insert(_TRIAL, run="run-1", place=TrialPosition(2, 7))
        store.end_run("run-1", "done", ended=2.5)
    for beside in ("lock", "copy", "since"):
        (folder / f"records.sqlite.{beside}").unlink()
    entry = TokenEntry(
        hash=Digest.of(b"token"), user="ann", role=FarmRole.SUBMIT, expires_at=4102444800.0
    )
    (folder / "tokens.json").write_text(table_text((entry,)))
    AuditFile(folder / "audit.jsonl", lambda event, **fields: None)(
        AuditEntry(
            at_seconds=1.5,
            user="ann",
            roles="submit",
            peer="ipv4:10.0.0.3:4000",
            method="Run",
            subject="an artifact",
            allowed=False,
            why="a reason",
        )
    )
    OutputFolder(folder).write_program(_PROGRAM, {"tilefarm": "0"})
    for path in (folder / "program").iterdir():
        if path.name not in (CODE_FILE, CONSTANTS_FILE, MANIFEST_FILE):
            path.unlink()  # What is for people is read by nobody here.


def _write_tracker_state(path: Path) -> None:
    lease = Lease(lease_id="lease-1", device=_DEVICE, fence=7, ttl_seconds=30.0, ticket=b"ticket")
    kept = TrackerState(path, lambda event, **fields: None)
    state = TableState(
        fence=7,
        devices=(Register(device=_DEVICE, fence=7, secret=b"s" * 32),),
        leases=(
            Holding(
                lease=lease, owner="tune", user="ann", request_id="r1", job="run-1", priority=3
            ),
        ),
        standings=(
            ("board1", AdministrativeState(readmissions=2, readmitting=True)),
            ("board2", AdministrativeState(quarantine="it burns")),
        ),
    )
    kept.save(TableChanges.of(state))
    kept.close()


def _tracker_state(path: Path) -> TableState:
    kept = TrackerState(path, lambda event, **fields: None)
    try:
        return kept.load()
    finally:
        kept.close()


def _trials(path: Path) -> dict[str, Any]:
    with TrialStore(path) as store:
        places = [document(place) for place in store.places().values()]
        return {
            "runs": document(store.runs()),
            "trials": document(store.trials()),
            "places": places,
        }


READERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "tracker.sqlite": _tracker_state,
    "records.sqlite": _trials,
    "tokens.json": read_table,
    "audit.jsonl": lambda path: list(read_audit(path)),
    "program": read_program,
}
"""How this version reads each kind of file, by its name in a folder of the corpus."""


def read_files(folder: Path) -> dict[str, Any]:
    """What the files of a folder say; the folder may be written to."""
    return {name: document(read(folder / name)) for name, read in READERS.items()}


def write(folder: Path) -> None:
    """The folder of this version. A version that was released has one that never changes again."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    write_files(folder)
    for name, content in (
        (MESSAGES, messages()),
        (SCHEMA, schema()),
        (RECORDS, read_files(folder)),
    ):
        (folder / name).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    for beside in ("lock", "copy", "since"):
        (folder / f"records.sqlite.{beside}").unlink()


def _field(field: FieldDescriptor) -> str:
    """`[repeated ]type name`, as a schema would say it."""
    kinds = {
        value: name.removeprefix("TYPE_").lower()
        for name, value in vars(FieldDescriptor).items()
        if name.startswith("TYPE_")
    }
    named = field.message_type or field.enum_type
    kind = named.full_name if named else kinds[field.type]
    return f"{'repeated ' if field.is_repeated else ''}{kind} {field.name}"


if __name__ == "__main__":
    write(PRESENT)
