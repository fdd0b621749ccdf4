"""Nights as files: a document of `tilefarm bench zoo --json`, a run's summary, a folder of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from tilefarm.documents import read_json
from tilefarm.errors import DataError

SUMMARY: Final = "summary.json"
NETWORK: Final = "the network"
"""The row of a run that is of no workload, whatever network it is."""
_REMEDY: Final = (
    "a file of `tilefarm bench zoo --json`, the folder of a `tilefarm tune`, or one with such"
    " folders"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """One number of a night: `cycles` is None where nothing ended well; `device` counted them."""

    cycles: int | None
    device: str = ""


CyclesByName: TypeAlias = Mapping[str, Cycles]
"""What took how many, by its name."""


def read_night(path: Path) -> CyclesByName:
    """What took how many cycles, by name.

    Raises:
        DataError: nothing of the kind is there.
    """
    night = dict(_folder_rows(path) if path.is_dir() else _rows(_document(path), path, ""))
    if not night:
        raise DataError(f"{path}: nothing with cycles is there", _REMEDY)
    return night


def _folder_rows(folder: Path) -> Iterator[tuple[str, Cycles]]:
    for path in sorted(folder.rglob(SUMMARY)):
        place = path.parent.relative_to(folder).as_posix()
        yield from _rows(_document(path), path, "" if place == "." else f"{place}: ")


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = read_json(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}", _REMEDY) from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}", _REMEDY) from None
    if not isinstance(document, dict):
        raise DataError(f"{path}: not a document of ours", _REMEDY)
    return document


def _is_by_clock(document: Mapping[str, Any]) -> bool:
    """Whether it is of a run, or of the zoo, on a device that counts no cycles."""
    networks = document.get("networks")
    rows = networks if isinstance(networks, list) else []
    return document.get("best_seconds") is not None or any(
        isinstance(row, dict) and row.get("program_seconds") is not None for row in rows
    )


def _rows(document: Mapping[str, Any], path: Path, prefix: str) -> Iterator[tuple[str, Cycles]]:
    if _is_by_clock(document):
        raise DataError(
            f"{path}: its times were told by a clock, and nights are compared in cycles",
            "a run on devices that count them",
        )
    try:
        rows = _zoo_rows(document) if "networks" in document else _run_rows(document)
        for name, cycles, device in rows:
            if not isinstance(cycles, int | None) or isinstance(cycles, bool):
                raise TypeError(f"cycles of {cycles!r}")
            if not isinstance(name, str) or not isinstance(device, str):
                raise TypeError(f"{name!r} on {device!r}")
            yield prefix + name, Cycles(cycles=cycles, device=device)
    except KeyError as missing:
        raise DataError(f"{path}: not a document of ours: no {missing}", _REMEDY) from None
    except (TypeError, ValueError) as error:
        raise DataError(f"{path}: not a document of ours: {error}", _REMEDY) from None


def _zoo_rows(document: Mapping[str, Any]) -> Iterator[tuple[str, int | None, str]]:
    for row in document["networks"]:
        yield f"{row['name']}: as it is built", row["plain_cycles"], ""
        yield f"{row['name']}: as planned", row["predicted_cycles"], ""
    for name in document["refused"]:
        yield f"{name}: as it is built", None, ""


def _run_rows(document: Mapping[str, Any]) -> Iterator[tuple[str, int | None, str]]:
    device = document["target_digest"]
    for row in document["workloads"]:
        yield row["name"], row["best_cycles"], device
    yield NETWORK, document["network_cycles"] or document["best_cycles"], device
