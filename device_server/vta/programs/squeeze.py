"""Moves a recorded stream's data together, so that its memory image has no large holes.

Whole granules move, and a granule is a multiple of every burst and every element, so a stream
takes the same cycles as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
from tilefarm.target import VtaConfig
from tilefarm.vta_isa import Memory, element_nbytes

from device_server.vta.programs.instructions import Instruction, Transfer
from device_server.vta.programs.program import Bytes

GRANULE_NBYTES: Final = 1 << 16


def squeezed(
    records: Sequence[Instruction], images: Sequence[Bytes], vta: VtaConfig
) -> tuple[tuple[Instruction, ...], tuple[Bytes, ...]]:
    """The same program on images without unused granules.

    Args:
        records: the instructions; every address they use lies in the images.
        images: memories of one size, for example before and after.
    """
    sizes = element_nbytes(vta)
    count = -(-images[0].size // GRANULE_NBYTES)
    used = np.zeros(count, bool)
    for image in images:
        used[np.unique(np.flatnonzero(image) // GRANULE_NBYTES)] = True
    for begin, end in _spans(records, sizes):
        used[begin // GRANULE_NBYTES : -(-end // GRANULE_NBYTES)] = True
    place = np.cumsum(used) - 1
    moved = tuple(_moved(record, place, sizes) for record in records)
    return moved, tuple(_kept(image, used) for image in images)


def _spans(records: Sequence[Instruction], sizes: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """First byte and end of what each transfer reaches over in DRAM."""
    for record in records:
        if isinstance(record, Transfer) and not record.is_nop:
            size = _size(record, sizes)
            last_row = record.dram_base + (record.y_size - 1) * record.x_stride
            yield record.dram_base * size, (last_row + record.x_size) * size


def _moved(
    record: Instruction, place: npt.NDArray[np.int64], sizes: tuple[int, ...]
) -> Instruction:
    if not isinstance(record, Transfer) or record.is_nop:
        return record
    size = _size(record, sizes)
    granule, offset = divmod(record.dram_base * size, GRANULE_NBYTES)
    return replace(record, dram_base=(int(place[granule]) * GRANULE_NBYTES + offset) // size)


def _size(record: Transfer, sizes: tuple[int, ...]) -> int:
    return sizes[Memory.OUT] if record.store else sizes[record.memory]


def _kept(image: Bytes, used: npt.NDArray[np.bool_]) -> Bytes:
    """The used granules in a row; the last one may be shorter."""
    parts = [
        image[granule * GRANULE_NBYTES : (granule + 1) * GRANULE_NBYTES]
        for granule in np.flatnonzero(used).tolist()
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)
