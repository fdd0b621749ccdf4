"""What the simulator's library needs beyond a program's own memory; measured in a fresh process.

Run as `python -m driver.program.vta.footprint PROGRAM`; prints bytes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tilefarm.errors import InfraError
from tilefarm.interpreter import python_command

_STATUS: Final = Path("/proc/self/status")
_CLEAR: Final = Path("/proc/self/clear_refs")
_PEAK_TO_PRESENT: Final = "5"
_PROMPT_FREE: Final = ("MALLOC_MMAP_THRESHOLD_=32768", "MALLOC_TRIM_THRESHOLD_=32768")
"""Without these the library would live in what reading the program left behind, unseen."""


def footprint(file: Path) -> int:
    """Bytes that one program file takes, at the peak of one exact run.

    Raises:
        InfraError: the process that measures failed.
    """
    command = [
        "env",
        *_PROMPT_FREE,
        *python_command("-m", "driver.program.vta.footprint", str(file)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InfraError(f"measuring memory failed: {why}")
    return int(done.stdout)


def _measure(file: Path) -> int:
    """The peak during a run, less what was there before and the copy of the image that it makes."""
    from device_server.vta.library.library import VtaLibrary
    from device_server.vta.programs.program import read_program

    program = read_program(file)
    image = program.image()
    library = VtaLibrary()
    _CLEAR.write_text(_PEAK_TO_PRESENT)
    before = _nbytes("VmRSS")
    library.configure(program.target)
    library.run_stream(program.instructions, image)
    return max(0, _nbytes("VmHWM") - before - image.size)


def _nbytes(key: str) -> int:
    found = re.search(rf"^{key}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise InfraError(f"{_STATUS} does not say {key}")
    return int(found.group(1)) * 1024


if __name__ == "__main__":
    print(_measure(Path(sys.argv[1])))
