"""A VTA program as a file: instructions, memory before, and what must come out.

The format is that of the golden vectors: one `.npz` of plain arrays, `meta` a JSON text. Beyond it,
`meta["target"]` may hold the accelerator (`Target.to_json`); without it the geometry is the default
and `meta["len_bits"]` the burst length.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
from tilefarm.digest import canonical_json
from tilefarm.documents import decoded
from tilefarm.errors import TargetError
from tilefarm.plural import plural
from tilefarm.system_errors import unwritable
from tilefarm.target import BusTiming, Target, impossibilities, target_from_document

from device_server.vta.programs.arrays import ArrayFile

MOST_IMAGE_NBYTES: Final = 1 << 30
"""The largest memory image that a program may ask for."""

_GAP_NBYTES: Final = 64

Bytes = npt.NDArray[np.uint8]
Spans = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Parts of a memory image: int64[k, 2] of (address, length in bytes), and their bytes."""

    places: npt.NDArray[np.int64]
    content: Bytes

    @classmethod
    def changed(cls, before: Bytes, after: Bytes) -> Self:
        """The parts in which two images of one size differ, with the bytes of the second.

        Parts that lie within a few bytes of one another become one.
        """
        different = np.flatnonzero(before != after)
        if not different.size:
            return cls(np.zeros((0, 2), np.int64), np.zeros(0, np.uint8))
        cuts = np.flatnonzero(np.diff(different) > _GAP_NBYTES)
        begins = different[np.concatenate(([0], cuts + 1))]
        ends = different[np.concatenate((cuts, [-1]))] + 1
        content = [after[begin:end] for begin, end in zip(begins, ends, strict=True)]
        return cls(np.stack([begins, ends - begins], axis=1), np.concatenate(content))

    def write_to(self, image: Bytes) -> None:
        """Overwrite these parts of an image."""
        position = 0
        for address, nbytes in self.places.tolist():
            image[address : address + nbytes] = self.content[position : position + nbytes]
            position += nbytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program:
    """An instruction stream with the memory it runs on and, where known, the answer.

    Attributes:
        instructions: uint64[n, 2]; column 0 is the low word.
        dram_nbytes: size of the memory image, address 0 first.
        before: parts of the image that are not 0 at the start.
        after: parts of the image that the run changes; None if unknown.
        cycles: expected cycle counter, or None.
        accumulator_writes: expected writes of GEMM and ALU micro-ops ("ucnt"), or None.
        spans: expected int64[n, 2] of (first busy cycle, first idle cycle after it), or None.
        stream_address: where the stream lay; without influence.
        meta: everything that JSON can say about it; has `len_bits`.
    """

    instructions: npt.NDArray[np.uint64]
    dram_nbytes: int
    before: Regions
    after: Regions | None = None
    cycles: int | None = None
    accumulator_writes: int | None = None
    spans: Spans | None = None
    stream_address: int = 0
    meta: Mapping[str, Any] = field(
        default_factory=lambda: {"len_bits": BusTiming().log_burst_beats}
    )

    @property
    def name(self) -> str:
        """What the file calls itself; may be empty."""
        return str(self.meta.get("name", ""))

    @property
    def target(self) -> Target:
        """The accelerator that the program is for."""
        document = self.meta.get("target")
        if document is None:
            timing = BusTiming(log_burst_beats=int(self.meta["len_bits"]))
            return Target(name="default", timing=timing)
        return target_from_document(document, where="meta.target")

    def image(self) -> Bytes:
        """The memory before the run; a fresh array."""
        image = np.zeros(self.dram_nbytes, np.uint8)
        self.before.write_to(image)
        return image

    def expected_image(self) -> Bytes | None:
        """The memory after the run, or None if the file does not say."""
        if self.after is None:
            return None
        image = self.image()
        self.after.write_to(image)
        return image


def with_target(meta: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """A program's meta that names the accelerator, where it is not simply the default one."""
    named = {**meta, "len_bits": target.timing.log_burst_beats}
    plain = Target(name="", timing=replace(BusTiming(), log_burst_beats=named["len_bits"]))
    if _what_runs_show(target) != _what_runs_show(plain):
        named["target"] = json.loads(target.to_json())
    return named


def _what_runs_show(target: Target) -> tuple[object, ...]:
    """What of a target decides how a program runs on it; the other limits bound the compiler."""
    return target.geometry, target.timing, target.limits.alu_mul, target.board.design


def read_program(path: Path) -> Program:
    """The program in a file.

    Raises:
        DataError: the file or one of its fields is missing, cut short or contradicts another; the
            message names the field.
        TargetError: no hardware can have the parameters in its meta.
    """
    with ArrayFile(path) as file:
        instructions = file.array("insns", "uint64", (None, 2))
        if not len(instructions):
            raise file.refuse("insns", "is empty")
        dram_nbytes = file.number("dram_size")
        if dram_nbytes > MOST_IMAGE_NBYTES:
            raise file.refuse("dram_size", f"is above {MOST_IMAGE_NBYTES}: {dram_nbytes}")
        program = Program(
            instructions=instructions,
            dram_nbytes=dram_nbytes,
            before=_regions(file, "segments", "dram", dram_nbytes),
            after=_optional_regions(file, dram_nbytes),
            cycles=file.number("cycles") if "cycles" in file else None,
            accumulator_writes=file.number("ucnt") if "ucnt" in file else None,
            spans=_spans(file, len(instructions)),
            stream_address=file.number("insn_addr") if "insn_addr" in file else 0,
            meta=_meta(file),
        )
    _check_target(path, program)
    return program


def write_program(path: Path, program: Program) -> None:
    """Write the file; equal programs make equal bytes.

    Raises:
        OutputError: it cannot be written.
    """
    fields: dict[str, Any] = {
        "insns": program.instructions.astype(np.uint64),
        "insn_addr": np.int64(program.stream_address),
        "dram_size": np.int64(program.dram_nbytes),
        "segments": program.before.places.astype(np.int64),
        "dram": program.before.content.astype(np.uint8),
    }
    if program.cycles is not None:
        fields["cycles"] = np.int64(program.cycles)
    if program.accumulator_writes is not None:
        fields["ucnt"] = np.int64(program.accumulator_writes)
    if program.after is not None:
        fields["after_segments"] = program.after.places.astype(np.int64)
        fields["after"] = program.after.content.astype(np.uint8)
    if program.spans is not None:
        fields["t_start"], fields["t_end"] = program.spans.T.astype(np.int32)
    fields["meta"] = np.array(canonical_json(dict(program.meta)))
    try:
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **fields)
    except OSError as error:
        raise unwritable(path, error) from None


def _regions(file: ArrayFile, places: str, content: str, dram_nbytes: int) -> Regions:
    where = file.array(places, "int64", (None, 2))
    data = file.array(content, "uint8", (None,))
    for row, (address, nbytes) in enumerate(where.tolist()):
        if address < 0 or nbytes < 0 or address + nbytes > dram_nbytes:
            why = f"row {row}: {nbytes} bytes at {address} are not within {dram_nbytes}"
            raise file.refuse(places, why)
    total = sum(where[:, 1].tolist())
    if total != data.size:
        raise file.refuse(content, f"has {plural(data.size, 'byte')}, {places!r} names {total}")
    return Regions(where, data)


def _optional_regions(file: ArrayFile, dram_nbytes: int) -> Regions | None:
    if "after" not in file and "after_segments" not in file:
        return None
    return _regions(file, "after_segments", "after", dram_nbytes)


def _spans(file: ArrayFile, instructions: int) -> Spans | None:
    if "t_start" not in file and "t_end" not in file:
        return None
    columns = [file.array(name, "int32", (instructions,)) for name in ("t_start", "t_end")]
    return np.stack(columns, axis=1).astype(np.int64)


def _meta(file: ArrayFile) -> dict[str, Any]:
    text = file.text("meta")
    try:
        meta = decoded(text)
    except ValueError as error:
        raise file.refuse("meta", f"is not JSON: {error}") from None
    if not isinstance(meta, dict):
        raise file.refuse("meta", "is not a JSON object")
    len_bits = meta.get("len_bits")
    if not isinstance(len_bits, int) or isinstance(len_bits, bool):
        raise file.refuse("meta", f"has no integer len_bits: {len_bits!r}")
    return meta


def _check_target(path: Path, program: Program) -> None:
    try:
        reasons = impossibilities(program.target)
    except TargetError as error:
        raise TargetError(f"{path}: {error.what}", error.hint) from None
    if reasons:
        raise TargetError(
            f"{path}: meta: " + "; ".join(reasons), "`tilefarm vta dump` writes such a file anew"
        )
