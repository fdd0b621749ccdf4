"""Another compiler is another one: for those who compile, and for those who ask which it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tilefarm.code import code_digest
from tilefarm.interpreter import python_command

from compile_worker.machines.vta.pipeline import VTA_PASSES
from driver.benchmarks.nightly.other_compiler import other_compiler

ASK = (
    "from compile_worker.machines.vta.pipeline import VTA_PASSES\n"
    "from tilefarm.code import code_digest\n"
    "print(*(each.name for each in VTA_PASSES))\n"
    "print(code_digest().hex)"
)


def test_its_processes_lack_a_pass_and_have_another_digest(tmp_path: Path) -> None:
    command = [*other_compiler(tmp_path), *python_command("-c", ASK)]
    passes, digest = subprocess.check_output(command, text=True).splitlines()
    names = [each.name for each in VTA_PASSES]
    names.remove("stagger_stores")
    assert passes.split() == names
    assert digest != code_digest().hex
