"""`tilefarm check` finds the first wrong step, and says which tile."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from kit.networks.forms_once import forms_once
from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.measurement import RunFailure, Status
from tilefarm.target import TARGETS
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from driver import cli
from driver.commands.check import head, row, verdict
from driver.commands.validation.checked_steps import checked_steps, first_difference
from driver.commands.validation.checking import EQUAL, checked, schedules
from driver.commands.validation.step_executor import Results, SandboxExecutor, StepJob
from driver.network.examples import DEMO_CALIBRATION
from driver.network.forms import Forms, NetworkSource

compiled = cache(compile_kernel)


@pytest.fixture(autouse=True)
def _converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driver.network.forms.forms_of", forms_once)


@pytest.fixture(scope="module")
def digits() -> Forms:
    return forms_once(NetworkSource(model="zoo:digits"), TARGETS["sim"])


def with_attr(job: CompileJob, name: str, value: int) -> CompileJob:
    """Another kernel in the place of one."""
    old = job.workload
    attrs = tuple((k, value if k == name else v) for k, v in old.attrs)
    wrong = Workload(old.operator, old.inputs, old.outputs, attrs)
    return replace(job, workload=wrong, trace=Trace())


def without_relu(job: CompileJob) -> Artifact | BuildFailure:
    """A compiler that forgets the lower clip of conv2 and of conv4."""
    forgets = job.workload.operator == "conv2d" and job.workload.attr_int("lo") == 0
    inputs = {spec.name: spec.shape for spec in job.workload.inputs}
    if not forgets or inputs["weight"][2:4] != (3, 3):
        return compiled(job)
    return compiled(with_attr(job, "lo", -128))


def test_all_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "zoo:digits", "--data", str(DEMO_CALIBRATION), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["right"]
    assert found["quantization"].startswith("minmax")
    assert found["first_wrong"] is None
    assert found["program"] == EQUAL
    assert all(step["right"] for step in found["steps"])
    assert min(step["sqnr_db"] for step in found["steps"] if step["sqnr_db"]) > 20


def test_devices_are_checked_like_the_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--data", str(DEMO_CALIBRATION), "--images", "1", "--runtime", "stand-in", "--json"]
    assert cli.main(["check", "zoo:digits", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["right"]
    assert found["program"] == EQUAL
    assert {step["cycles"] for step in found["steps"]} == {0}, "this library counts none"


class Lies(SandboxExecutor):
    """Says that every step has failed."""

    def steps(self, jobs: Iterable[StepJob]) -> Results:
        for each in jobs:
            yield RunFailure(artifact=each.job.artifact, status=Status.RUN_TIMEOUT, why="no answer")


def test_what_an_executor_says_is_what_is_told(digits: Forms) -> None:
    executor = Lies(digits.network.target)
    found = checked(digits, digits.samples(None, 1), executor=executor, compile_with=compiled)
    assert {step.failure for step in found.steps} == {"does not run: run_timeout: no answer"}


def test_a_wrong_kernel_is_named_with_its_tile(digits: Forms) -> None:
    watched: list[str] = []
    found = checked(
        digits,
        digits.samples(None, 1),
        compile_with=without_relu,
        watch=lambda step, noise: watched.append(row(step, noise)),
    )
    first = found.first_wrong
    assert first is not None
    assert first.name == "conv2"
    assert first.offence is not None
    assert [axis for axis, _ in first.offence.place] == ["n", "c-block", "h", "w", "row", "lane"]
    assert first.offence.expected == 0
    assert first.offence.got < 0
    assert not found.is_right
    assert [line.split()[0] for line in watched] == [step.name for step in found.steps]
    assert [line.split()[0] for line in watched if "DIFFERS" in line] == ["conv2", "conv4"]
    assert max(map(len, watched)) <= 100
    assert head(counts=True).index("  device") == watched[0].rindex("  equal")
    plain = row(found.steps[0], None, counts=False)
    assert head(counts=False).index("  device") == plain.rindex("  equal"), "no empty column"
    text = "\n".join(verdict(found))
    assert "the first step that differs: conv2 (conv2d)" in text
    assert "made from conv2 (Conv), relu2 (Relu)" in text
    assert "expected 0, got -" in text
    assert "not run, as a step is wrong" in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_kernel_that_does_not_compile_is_named(digits: Forms) -> None:
    def refuses(job: CompileJob) -> Artifact | BuildFailure:
        if job.workload.operator != "dense":
            return compiled(job)
        return BuildFailure(
            job=job.digest, status=Status.COMPILE_ERROR, stage="bind", why="no room"
        )

    found = checked(digits, digits.samples(None, 1), compile_with=refuses)
    assert found.first_wrong is not None
    assert found.first_wrong.name == "dense"
    assert found.first_wrong.failure == "does not compile: compile_error in bind: no room"


def test_a_kernel_whose_file_is_damaged_is_named(digits: Forms) -> None:
    def cuts(job: CompileJob) -> Artifact | BuildFailure:
        made = compiled(job)
        if job.workload.operator != "scaled_add" or isinstance(made, BuildFailure):
            return made
        return replace(made, code=made.code[: len(made.code) // 2])

    found = checked(digits, digits.samples(None, 1), compile_with=cuts)
    assert found.first_wrong is not None
    assert found.first_wrong.name == "residual"
    assert found.first_wrong.failure.startswith("does not run: ")


def test_samples_that_do_not_fit_are_checked_in_parts(digits: Forms) -> None:
    def clips_early(job: CompileJob) -> Artifact | BuildFailure:
        if job.workload.operator != "scaled_add":
            return compiled(job)
        return compiled(with_attr(job, "hi", 60))

    network, (image,) = digits.network, digits.samples(None, 3).inputs.values()
    data = {network.inputs[0].name: np.concatenate([image[:2] * 0, image[2:]])}
    steps = list(
        checked_steps(
            network, schedules(network, None), data, compile_with=clips_early, most_nbytes=1
        )
    )
    assert [step.name for step in steps] == [step.name for step in network.steps]
    (wrong,) = (step for step in steps if not step.is_right)
    assert wrong.offence is not None
    assert (wrong.name, wrong.offence.sample, wrong.offence.got) == ("residual", 2, 60)


def test_the_first_difference_by_axis() -> None:
    wanted = np.zeros((1, 2, 1, 4), np.int8)
    got = wanted.copy()
    assert first_difference(wanted, got) is None
    got[0, 1, 0, 2] = 5
    got[0, 1, 0, 3] = 6
    found = first_difference(wanted, got, sample=3)
    assert str(found) == (
        "sample 3, n 0, c-block 1, row 0, lane 2: expected 0, got 5; 2 of 8 elements differ"
    )
    zeros = np.zeros(2, np.float32)
    minus = first_difference(zeros, -zeros)
    assert minus is not None, "bits are compared, not values"
    assert minus.place == (("axis 0", 0),)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("zoo:vgg",), "zoo:vgg: no such network"),
        (("zoo:digits", "--images", "0"), "argument --images: '0' is not a whole number from 1 on"),
        (("zoo:digits", "--data", "absent.npz"), "cannot read absent.npz"),
        (("zoo:digits", "--out", "absent"), "absent: no records of a run"),
        (("net.onnx",), "cannot read net.onnx"),
        (("zoo:digits", "--tracker", "farm:9190"), "--tracker needs --token-file"),
        (("zoo:digits", "--token-file", "t"), "--token-file is for a farm that somebody serves"),
    ],
)
def test_bad_input(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    assert cli.main(["check", *words]) == 2
    assert why in capsys.readouterr().err
