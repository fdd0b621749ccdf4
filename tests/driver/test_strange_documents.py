"""Whatever somebody gives as a file of JSON or TOML, the answer is an error of ours in words."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import TilefarmError
from tilefarm.target import TARGETS, load_target
from tilefarm.trust.revoked import read_revoked
from tilefarm.trust.tokens import read_table

from compile_worker.space import generate
from device_server.device.hooks import load_hooks
from driver.commands.compile_steps.workload_file import read_workload
from driver.jobs.nightly.nights import read_night
from driver.program.deployed import read_program
from driver.program.folder import MANIFEST_FILE
from driver.program.vta.layers import Convolution
from driver.program.vta.schedules import read_point, read_trace
from driver.tune.chosen_schedules import read_schedules
from driver.tune.output import OutputFolder, RunIdentity

SIM: Final = TARGETS["sim"]
NOTHING: Final = Digest.of(b"")
STRANGE: Final[dict[str, bytes]] = {
    "empty": b"",
    "bytes": b"\xff\xfe{",
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "digits": b"1" * 5_000,
} | {
    text: text.encode()
    for text in (
        "null",
        "true",
        "7",
        "NaN",
        '"text"',
        "[]",
        "[1]",
        "{}",
        '{"schema": 1}',
        '{"schema": []}',
        '{"networks": 1, "refused": 2}',
        '{"networks": [1], "refused": []}',
        '{"networks": [{"name": "a", "plain_cycles": "x", "predicted_cycles": 2}], "refused": []}',
        '{"target_digest": "x", "workloads": [], "network_cycles": "x", "best_cycles": 1}',
        '{"target_digest": [], "workloads": [{"name": "a", "best_cycles": 1}]}',
        '{"version": 1, "tokens": 1, "revoked": 1}',
        '{"version": 1, "tokens": [1], "revoked": [1]}',
        '{"version": 1, "tokens": [{"user": []}], "revoked": [{"holder": 1}]}',
        '{"operator": [], "inputs": [], "outputs": [], "attrs": {}}',
        '{"operator": "add", "inputs": [["a", [1e400], "int8"]], "outputs": [], "attrs": {}}',
        '[["split", [1], {"a": 1}]]',
        "[[]]",
        '{"a": 1.5}',
        "a = 1",
        "[a]\nb = " + "[" * 5_000,
    )
}


def claimed(path: Path) -> object:
    """The output folder whose `run.json` it is."""
    (path.parent / "out").mkdir()
    (path.parent / "out" / "run.json").write_bytes(path.read_bytes())
    identity = RunIdentity(model=NOTHING, target=NOTHING, seed=0, proposer="random")
    return OutputFolder.open(path.parent / "out", identity, {})


def loaded(path: Path) -> object:
    """The program folder whose manifest it is."""
    (path.parent / MANIFEST_FILE).write_bytes(path.read_bytes())
    return read_program(path.parent)


def point(path: Path) -> object:
    return read_point(path, generate(Convolution(16, 16, 8, 8, 1, 1, 0).workload(SIM), SIM))


def as_toml(path: Path) -> object:
    return load_hooks(path.rename(path.with_suffix(".toml")))


READERS: Final[dict[str, Callable[[Path], object]]] = {
    "target": lambda path: load_target(str(path)),
    "workload": lambda path: read_workload(path, SIM),
    "trace": read_trace,
    "point": point,
    "night": read_night,
    "schedules": read_schedules,
    "tokens": read_table,
    "revoked": read_revoked,
    "hooks": load_hooks,
    "hooks in TOML": as_toml,
    "run": claimed,
    "manifest": loaded,
}
MEANT: Final = {("trace", "[]"), ("point", "{}"), ("hooks", "{}"), ("hooks in TOML", "empty")}
"""What a reader may take: no steps, the plain values, no hooks."""


@pytest.mark.parametrize("reader", READERS)
def test_strange_documents_are_refused_in_words(reader: str, tmp_path: Path) -> None:
    for number, (name, content) in enumerate(STRANGE.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "given.json"
        path.write_bytes(content)
        if (reader, name) in MEANT:
            READERS[reader](path)
            continue
        with pytest.raises(TilefarmError) as refused:
            READERS[reader](path)
        assert str(folder) in refused.value.what, name
        assert refused.value.hint, name
        assert "Error(" not in refused.value.what, name


OTHER_VALUES: Final[tuple[Any, ...]] = (None, [], {}, "text", -1, True, 1e308, 10**30)


def mutants(document: dict[str, Any]) -> Iterator[str]:
    """The document with each value of it, down to two levels, replaced by others."""
    for key in document:
        places = (
            [(key,), *((key, inner) for inner in document[key])]
            if isinstance(document[key], dict)
            else [(key,)]
        )
        for place in places:
            for value in OTHER_VALUES:
                changed = copy.deepcopy(document)
                holder = changed if len(place) == 1 else changed[place[0]]
                holder[place[-1]] = value
                yield json.dumps(changed)


def test_targets_with_values_of_another_kind_are_refused_or_meant(tmp_path: Path) -> None:
    path, refused = tmp_path / "target.json", 0
    for text in mutants(json.loads(SIM.to_json())):
        path.write_text(text)
        try:
            load_target(str(path))
        except TilefarmError:
            refused += 1
    assert refused > 100
