"""A program as it lies in a folder, read back and checked against its manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tilefarm.digest import Digest
from tilefarm.documents import read_json
from tilefarm.errors import ModelError, TargetError
from tilefarm.target import target_from_document

from driver.network import Grid
from driver.program.folder import MANIFEST_FILE, MANIFEST_SCHEMA
from driver.program.model import LayerCall, NetworkProgram, Parameter
from driver.program.user_passes import passes_of_document

_HINT = "give the folder `program` that `tilefarm tune` wrote"


def read_program(folder: Path) -> NetworkProgram:
    """The program in a folder that `OutputFolder.write_program` wrote.

    Raises:
        ModelError: it is not there, damaged, or of another version.
    """
    manifest = _manifest(folder)
    try:
        return NetworkProgram(
            name=str(manifest["name"]),
            target=target_from_document(manifest["target"], where=str(folder / MANIFEST_FILE)),
            entry=str(manifest["entry"]),
            code=_checked(folder, manifest["code"]),
            constants=_checked(folder, manifest["constants"]),
            arena_nbytes=int(manifest["arena_nbytes"]),
            inputs=tuple(map(_parameter, manifest["inputs"])),
            outputs=tuple(map(_parameter, manifest["outputs"])),
            calls=tuple(map(_call, manifest.get("calls", ()))),
            passes=passes_of_document(manifest),
        )
    except (KeyError, TypeError, ValueError, TargetError) as error:
        raise ModelError(f"{folder / MANIFEST_FILE}: damaged: {error}", _HINT) from None


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST_FILE
    try:
        document = read_json(file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not JSON"
        raise ModelError(f"{file}: {reason}", _HINT) from None
    if not isinstance(document, dict) or document.get("schema") != MANIFEST_SCHEMA:
        raise ModelError(f"{file}: not a manifest of schema {MANIFEST_SCHEMA}", _HINT)
    digest = document.pop("manifest_digest", None)
    if Digest.of_json(document).hex != digest:
        raise ModelError(f"{file}: damaged: its digest is not the one in it", "tune again")
    return document


def _checked(folder: Path, row: dict[str, Any]) -> bytes:
    """The bytes of one file, if they are those that the manifest names."""
    file = folder / Path(row["file"]).name
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror}", _HINT) from None
    if Digest.of(content).hex != row["sha256"]:
        raise ModelError(f"{file}: damaged: its digest is not the manifest's", "tune again")
    return content


def _parameter(row: dict[str, Any]) -> Parameter:
    return Parameter(
        name=row["name"],
        shape=tuple(row["shape"]),
        axes=tuple(row["axes"]),
        scale=row["scale"],
        grid=None if row["grid"] is None else _grid(row["grid"]),
    )


def _call(row: dict[str, Any]) -> LayerCall:
    predicted = row["predicted_cycles"]
    return LayerCall(
        entry=str(row["entry"]),
        layer=str(row["layer"]),
        kernel=str(row["kernel"]),
        predicted_cycles=None if predicted is None else int(predicted),
        ideal_cycles=int(row.get("ideal_cycles", 0)),
        macs=int(row.get("macs", 0)),
    )


def _grid(row: dict[str, Any]) -> Grid:
    return Grid(float(row["scale"]), int(row["zero"]), str(row["dtype"]))
