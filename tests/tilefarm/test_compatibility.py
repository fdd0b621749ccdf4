"""What earlier versions wrote is read as it was meant, and no schema takes anything back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kit.messages.specimens import blank, codecs, document

from . import write_corpus as corpus

VERSIONS = sorted(path for path in corpus.CORPUS.iterdir() if path.is_dir())
REMEDY = (
    "`PYTHONPATH=tests:. python -m tests.tilefarm.write_corpus` writes this version's corpus anew"
)


def stored(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def says(found: Any, meant: Any) -> bool:
    """Whether a record says all that an older one said; it may say more."""
    if isinstance(meant, dict):
        return isinstance(found, dict) and all(
            key in found and says(found[key], value) for key, value in meant.items()
        )
    if isinstance(meant, list):
        return len(found) == len(meant) and all(map(says, found, meant))
    return bool(found == meant)


def broken(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What a schema took back or gave another meaning."""
    return [
        f"{name} {key}: was {meant!r}, is {new[kind].get(name, {}).get(key)!r}"
        for kind in ("messages", "enums")
        for name, rows in old[kind].items()
        for key, meant in rows.items()
        if new[kind].get(name, {}).get(key) != meant
    ] + [path for path, types in old["methods"].items() if new["methods"].get(path) != types]


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_messages_of_every_version_are_read_as_they_were_meant(folder: Path) -> None:
    for name, rows in stored(folder, corpus.MESSAGES).items():
        for row in rows:
            record = codecs()[name].decode(bytes.fromhex(row["bytes"]))
            assert says(document(record), row["record"]), name


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_files_of_every_version_are_read_as_they_were_meant(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    found = json.loads(json.dumps(corpus.read_files(copy)))
    assert says(found, confirmed(stored(folder, corpus.RECORDS)))


def confirmed(records: dict[str, Any]) -> dict[str, Any]:
    """Without the trials that a version kept before they were confirmed: these count no more."""
    left = [trial for trial, _ in records["records.sqlite"].pop("unconfirmed", [])]
    kept = [trial for trial in records["records.sqlite"]["trials"] if trial not in left]
    return {**records, "records.sqlite": {**records["records.sqlite"], "trials": kept}}


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_no_schema_takes_back_what_a_version_had(folder: Path) -> None:
    assert not broken(stored(folder, corpus.SCHEMA), corpus.schema())


def test_the_corpus_of_this_version_is_what_it_writes() -> None:
    assert corpus.PRESENT in VERSIONS, REMEDY
    assert stored(corpus.PRESENT, corpus.SCHEMA) == corpus.schema(), REMEDY
    assert stored(corpus.PRESENT, corpus.MESSAGES) == corpus.messages(), REMEDY


def test_every_field_of_a_message_is_in_the_corpus() -> None:
    fields = corpus.schema()["messages"]
    for name, rows in stored(corpus.PRESENT, corpus.MESSAGES).items():
        seen = {
            str(field.number)
            for row in rows
            for field, _ in message_of(name, row["bytes"]).ListFields()
        }
        assert seen == set(fields[codecs()[name].message]), name


def message_of(name: str, content: str) -> Any:
    message = blank(codecs()[name].message)
    message.ParseFromString(bytes.fromhex(content))
    return message


@pytest.mark.parametrize(
    ("kind", "name", "key", "now"),
    [
        ("messages", "tilefarm.v1.Lease", "3", "uint32 fence"),
        ("messages", "tilefarm.v1.Lease", "3", "uint64 epoch"),
        ("messages", "tilefarm.v1.Lease", "3", None),
        ("enums", "tilefarm.v1.Status", "1", "STATUS_FINE"),
    ],
)
def test_a_reused_number_is_noticed(kind: str, name: str, key: str, now: str | None) -> None:
    old, new = corpus.schema(), corpus.schema()
    if now is None:
        del new[kind][name][key]
    else:
        new[kind][name][key] = now
    (reason,) = broken(old, new)
    assert reason.startswith(f"{name} {key}")
    assert not broken(new, new)


def test_a_method_that_is_gone_is_noticed() -> None:
    old, new = corpus.schema(), corpus.schema()
    path = "/tilefarm.v1.DeviceService/Read"
    del new["methods"][path]
    assert broken(old, new) == [path]
