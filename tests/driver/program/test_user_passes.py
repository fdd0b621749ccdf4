"""A program names the passes of users that it was lowered with; without these it is not checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.kernels.nests import EXAMPLES, SIM
from tilefarm.artifact import CompileJob, PluginText, ProgramJob
from tilefarm.digest import Digest
from tilefarm.errors import DataError
from tilefarm.trace import Step, Trace

from driver.network import forget_plugins, load_plugin
from driver.program.user_passes import (
    ProgramPass,
    passes_document,
    passes_in,
    passes_of_document,
    require_passes_of_run,
)

TEXT = """
from compile_worker.plugins.custom_pass import custom_pass

@custom_pass(after="flatten")
def tidy(func, target):
    return func
"""
DIGEST = Digest.of(TEXT.encode())
TIDY = ProgramPass(name="tidy", plugin="passes.py", digest=DIGEST)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    forget_plugins()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run whose program says that it was lowered with `tidy`."""
    (tmp_path / "run" / "program").mkdir(parents=True)
    manifest = tmp_path / "run" / "program" / "manifest.json"
    manifest.write_text(json.dumps({"schema": 3, **passes_document([TIDY])}))
    return tmp_path / "run"


def load(folder: Path, text: str) -> None:
    file = folder / "passes.py"
    file.write_text(text)
    load_plugin(str(file))


def test_those_of_all_kernels_are_named_once_as_schedules_and_jobs_do() -> None:
    kernel = CompileJob(
        workload=EXAMPLES["add"],
        trace=Trace((Step("lower_with", ("tidy", DIGEST.hex)),)),
        target=SIM,
        plugins=(PluginText("/elsewhere/passes.py", TEXT.encode()),),
    )
    plain = replace(kernel, trace=Trace(), plugins=(), symbol="other")
    job = ProgramJob(kernels=(kernel, kernel, plain), calls=(), buffers=2, target=SIM)
    assert passes_in(job) == (TIDY,)
    document = passes_document(passes_in(job))
    assert document == {
        "plugins": [["passes.py", DIGEST.hex]],
        "lower_with": [["tidy", DIGEST.hex]],
    }
    assert passes_of_document(document) == (TIDY,)
    assert passes_of_document({}) == (), "as older versions wrote it"
    assert str(TIDY) == f"tidy of passes.py ({DIGEST.short})"


def test_the_very_version_is_wanted(run: Path) -> None:
    with pytest.raises(
        DataError, match=rf"lowered with {TIDY.name} of passes.py .* not loaded"
    ) as no:
        require_passes_of_run(run)
    assert "--plugin passes.py" in no.value.hint
    load(run, f"{TEXT}# edited")
    with pytest.raises(DataError, match=r"what is loaded is another version of it, [0-9a-f]{12}"):
        require_passes_of_run(run)
    forget_plugins()
    load(run, TEXT)
    require_passes_of_run(run)
    load(run, TEXT.replace("tidy", "more"))
    with pytest.raises(DataError, match="its kernels were lowered without more"):
        require_passes_of_run(run)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"plugins": 3}', '{"lower_with": [["a"]]}'])
def test_a_run_without_a_program_says_nothing_of_passes(run: Path, text: str | None) -> None:
    manifest = run / "program" / "manifest.json"
    manifest.unlink() if text is None else manifest.write_text(text)
    require_passes_of_run(run)
