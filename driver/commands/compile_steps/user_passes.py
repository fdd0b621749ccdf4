"""A pass of the user's, from a Python file: `FILE.py:FUNCTION@STEP`."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import SettingsError

from compile_worker.ir.verify import Stage
from compile_worker.lowering import with_pass
from compile_worker.machine import Machines
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import SCHEDULED, Pass

_FORM: Final = re.compile(r"(?P<file>.+\.py):(?P<function>\w+)@(?P<after>\w+)")


def with_user_passes(texts: Sequence[str]) -> Machines:
    """The machines with the passes that options name, in their order.

    Each is `FILE.py:FUNCTION@STEP`: a function from (function, target) to function, to be run after
    the step. It leaves the stage that it finds.

    Raises:
        SettingsError: an option of another form, a file that cannot be loaded, no such function.
        PassError: no such step, or a pass of the same name.
    """
    machines = MACHINES
    for text in texts:
        found = _FORM.fullmatch(text)
        if found is None:
            raise SettingsError(f"--pass {text}: not a pass", "FILE.py:FUNCTION@STEP")
        run = _loaded(Path(found["file"]), found["function"])
        leaves = {
            SCHEDULED: Stage.SCHEDULED,
            **{step.name: step.leaves for each in machines.values() for step in each.passes},
        }
        stage = leaves.get(found["after"], Stage.FLAT)
        mine = Pass(found["function"], run, stage)
        machines = with_pass(machines, mine, after=found["after"])
    return machines


def _loaded(file: Path, function: str) -> Any:
    """The function of a file, which is run as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"user_pass_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise SettingsError(
            f"--pass: there is no file {file}", "name a .py file: FILE.py:FUNCTION@STEP"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise SettingsError(
            f"--pass: {file} cannot be loaded: {why}", f"`python {file}` shows where it fails"
        ) from None
    run = getattr(module, function, None)
    if not callable(run):
        raise SettingsError(
            f"--pass: {file} has no function {function}", "define it at the top of the file"
        )
    return run
