"""What is told of a wrong output, however large it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Role

from device_server.runner.verdicts import COMPARED_NBYTES, describe_mismatch


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([0], "1 of 196615 bytes differ, first in sample 0 at byte 0: 7, expected 0"),
        ([65535, 65536], "2 of 196615 bytes differ, first in sample 0 at byte 65535: 7, expected"),
        ([70_000, 196_614], "2 of 196615 bytes differ, first in sample 1 at byte 4464: 7, expec"),
    ],
)
def test_wrong_bytes_are_counted_and_the_first_is_told(
    wrong: list[int], told: str, tmp_path: Path
) -> None:
    right = bytes(3 * COMPARED_NBYTES + 7)
    content = bytearray(right)
    for at in wrong:
        content[at] = 7
    (tmp_path / "right").write_bytes(right)
    spec = BufferSpec(name="y", role=Role.OUTPUT, nbytes=1 << 16, expected=Digest.of(right))
    assert told in describe_mismatch(spec, bytes(content), lambda _: tmp_path / "right")
