"""What an FPGA runs: programmed when it is not what it shall run, and only then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tilefarm.digest import Digest
from tilefarm.errors import InfraError

from device_server.device.hook import Hook


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitstream:
    """What the board shall run, how it gets there, and how the board says what it runs."""

    file: Path
    program: Hook
    report: Hook | None = None


def ensure_programmed(bitstream: Bitstream, state: Path, *, boot_id: str) -> bool:
    """Has the board run the bitstream; whether it had to be programmed.

    Args:
        bitstream: what it shall run.
        state: the file that remembers what was programmed.
        boot_id: names this life of the host: what it programmed in an earlier one is forgotten.

    Raises:
        InfraError: the file cannot be read, or a hook fails.
    """
    try:
        digest = Digest.of(bitstream.file.read_bytes())
    except OSError as error:
        raise InfraError(
            f"cannot read the bitstream {bitstream.file}: {error.strerror}", "see file in --hooks"
        ) from None
    remembered = json.dumps({"digest": digest.hex, "boot_id": boot_id})
    if bitstream.report is not None:
        programmed = bitstream.report.run().strip() == digest.hex
    else:
        programmed = state.is_file() and state.read_text() == remembered
    if programmed:
        return False
    forget_programmed(state)
    bitstream.program.run({"file": str(bitstream.file), "digest": digest.hex})
    if bitstream.report is not None and (found := bitstream.report.run().strip()) != digest.hex:
        raise InfraError(
            f"the board reports bitstream {found[:64]!r} after it was programmed with {digest.hex}",
            "see the hook bitstream",
        )
    state.write_text(remembered)
    return True


def forget_programmed(state: Path) -> None:
    """Nobody knows what the board runs, after its power was cut for example."""
    state.unlink(missing_ok=True)


def host_boot_id() -> str:
    """Names this life of the host."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
