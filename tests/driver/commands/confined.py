"""Runs command lines one after the other as somebody whom the rights of files bind, root or not.

Run as a script it reads a JSON list of command lines, and prints exit code, stdout and stderr
of each. Root loses the two capabilities that let it pass by the rights of files, which takes effect
when the interpreter starts anew.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PR_CAPBSET_DROP: Final = 24
_CAP_DAC_OVERRIDE: Final = 1
_CAP_DAC_READ_SEARCH: Final = 2
_CONFINED: Final = "confined"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command line ended; `crashed` is the traceback of what came out of it."""

    code: int
    out: str
    err: str
    crashed: str


def run_confined(lines: Sequence[Sequence[str]], folder: Path) -> list[Ended]:
    """Run command lines in a folder, in one process."""
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps([list(line) for line in lines]),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [Ended(*each) for each in json.loads(done.stdout)]


def rights_bind(folder: Path) -> bool:
    """Whether a confined process is kept out of a folder; some containers do not let root try."""
    locked = folder / "rights"
    locked.mkdir(mode=0o000)
    try:
        (ended,) = run_confined([["targets", "--show", str(locked / "in" / "x.json")]], folder)
        return "Permission denied" in ended.err
    finally:
        locked.rmdir()


def _confine() -> None:
    """Start this interpreter anew without the capabilities."""
    if os.getuid() != 0 or _CONFINED in sys.argv:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.execv(sys.executable, [sys.executable, __file__, _CONFINED])


def _ended(line: Sequence[str]) -> tuple[int, str, str, str]:
    from driver.cli import main

    out, err, code, crashed = io.StringIO(), io.StringIO(), -1, ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(line)
        except BaseException:
            crashed = traceback.format_exc()
    return code, out.getvalue(), err.getvalue(), crashed


if __name__ == "__main__":
    _confine()
    print(json.dumps([_ended(line) for line in json.load(sys.stdin)]))
