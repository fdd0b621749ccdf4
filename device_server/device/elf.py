"""What may be loaded: a plain ELF shared object that asks for nothing but the VTA runtime.

Whatever is not known to be harmless is refused: a layout that could be mapped in another way than
it looks (`elf_image`), tables that no linker of the project writes (`elf_tables`), sections that
tell something else (`elf_sections`). This keeps strangers' code from running while an object is
loaded; the boundary is the sandboxed child.
"""

from __future__ import annotations

import struct
from typing import Final

from tilefarm.vta_runtime import FUNCTIONS

from device_server.device.elf_image import Machine, Refused, image_of
from device_server.device.elf_sections import check_sections
from device_server.device.elf_tables import tables_of

__all__ = ["RUNTIME_SYMBOLS", "Machine", "rejection"]

RUNTIME_SYMBOLS: Final = frozenset(FUNCTIONS)
"""What an object may leave undefined."""


def rejection(code: bytes, machine: Machine) -> str | None:
    """Why an artifact may not be loaded on a machine; None if it may. Never raises.

    Args:
        code: the whole file, whatever it is.
        machine: the device's processor.
    """
    try:
        image = image_of(code, machine)
        check_sections(image, tables_of(image, machine, RUNTIME_SYMBOLS))
    except Refused as reason:
        return str(reason)
    except (struct.error, OverflowError):
        return "the file is truncated, or its headers point outside of it"
    return None
