"""Passes of users' files: part of a schedule, found by workers in their jobs, one line if wrong."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from textwrap import indent

import pytest
from kit.kernels.nests import EXAMPLES, SIM
from tilefarm.artifact import Artifact, BuildFailure, CompileJob, PluginText, ProgramJob
from tilefarm.errors import ScheduleError, SettingsError
from tilefarm.measurement import Status
from tilefarm.trace import Step, Trace

from compile_worker.compiler import compile_kernel, compile_program
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import For, LoopKind
from compile_worker.ir.visit import find
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import PassError
from compile_worker.plugins.passes import (
    default_trace,
    plugins_of,
    require_passes,
    set_passes_of_users,
)
from compile_worker.plugins.plugin import plugin_of
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of

HEAD = """
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import For, LoopKind
from compile_worker.ir.visit import rewrite
from compile_worker.plugins.custom_pass import custom_pass
"""
WRITTEN_OUT = """
@custom_pass(after="flatten")
def written_out(func, target):
    def rule(node):
        if isinstance(node, For) and node.extent <= 4 and node.kind is LoopKind.SERIAL:
            return For(node.var, node.extent, node.body, LoopKind.UNROLLED, node.marks)
        return None
    return Func(func.name, func.params, rewrite(func.body, rule), func.attrs)
"""
SAME = """
@custom_pass(after="{after}")
def {name}(func, target):
    return func
"""


def mine(body: str) -> str:
    """A file with a pass that does this."""
    declared = '\n@custom_pass(after="flatten")\ndef mine(func, target):\n'
    return HEAD + declared + indent(body, "    ")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    set_passes_of_users(())


def job_with(text: str, example: str = "max_pool2d") -> CompileJob:
    """What a driver that has loaded such a file sends, for a worker that has not."""
    set_passes_of_users(plugin_of("mine.py", text.encode()).passes)
    trace = default_trace()
    job = CompileJob(workload=EXAMPLES[example], trace=trace, target=SIM, plugins=plugins_of(trace))
    set_passes_of_users(())
    sent: CompileJob = pickle.loads(pickle.dumps(job))
    return sent


def test_a_worker_finds_the_pass_in_its_job_and_runs_it_in_its_place() -> None:
    kinds: dict[str, set[LoopKind]] = {}

    def watch(name: str, func: Func) -> None:
        kinds[name] = {loop.kind for loop in find(func, For) if loop.extent <= 4}

    job = job_with(HEAD + WRITTEN_OUT)
    assert isinstance(compile_kernel(job, watch=watch), Artifact)
    names = [*kinds]
    assert names[names.index("flatten") + 1] == "written_out"
    assert LoopKind.SERIAL in kinds["flatten"]
    assert LoopKind.SERIAL not in kinds["written_out"]


def test_the_file_is_part_of_the_schedule_and_so_of_whatever_is_kept_by_it() -> None:
    plain = CompileJob(workload=EXAMPLES["add"], trace=Trace(), target=SIM)
    texts = (HEAD + WRITTEN_OUT, HEAD + WRITTEN_OUT + "\n# another version")
    jobs = [plain, *(job_with(text, "add") for text in texts)]
    assert len({job.digest for job in jobs}) == 3
    assert len({job.trace.digest for job in jobs}) == 3
    renamed = replace(jobs[1], plugins=(PluginText("elsewhere/mine.py", texts[0].encode()),))
    assert renamed.digest == jobs[1].digest, "where it lies is no part of it"


def test_every_point_of_a_space_is_lowered_with_it_and_without_it_all_is_as_it_was() -> None:
    workload = EXAMPLES["conv2d"]
    before = generate(workload, SIM)
    plain = before.trace(before.default)
    set_passes_of_users(plugin_of("mine.py", (HEAD + WRITTEN_OUT).encode()).passes)
    made = generate(workload, SIM)
    trace = made.trace(made.default)
    assert made.space == before.space
    assert trace.steps == (*plain.steps, *default_trace().steps)
    assert trace.digest != plain.digest
    set_passes_of_users(())
    assert default_trace() == Trace()
    after = generate(workload, SIM)
    assert after.trace(after.default).digest == plain.digest


def test_a_schedule_whose_pass_nobody_has_given_is_not_compiled_without_it() -> None:
    job = job_with(HEAD + WRITTEN_OUT)
    changed = PluginText("mine.py", (HEAD + WRITTEN_OUT + "# changed").encode())
    for plugins in ((), (changed,)):
        built = compile_kernel(replace(job, plugins=plugins))
        assert isinstance(built, BuildFailure)
        assert built.status is Status.COMPILE_ERROR
        assert "needs the pass written_out of the plugin " in built.why
    with pytest.raises(PassError, match="which is not loaded\n  try: --plugin with the file"):
        require_passes(job.trace)
    require_passes(Trace())


def test_two_behind_one_step_run_in_the_order_of_the_file() -> None:
    seen: list[str] = []
    two = SAME.format(name="b", after="flatten") + SAME.format(name="a", after="flatten")
    job = job_with(HEAD + two + SAME.format(name="c", after="scheduled"))
    assert isinstance(compile_kernel(job, watch=lambda name, _: seen.append(name)), Artifact)
    at = seen.index("flatten")
    assert seen[at : at + 3] == ["flatten", "b", "a"]
    assert seen[:3] == ["nest", "scheduled", "c"]


def test_a_pass_of_the_accelerator_leaves_kernels_of_its_host_alone() -> None:
    (name,) = {step.name for step in MACHINES["vta"].passes if step.name == "insert_tokens"}
    seen: list[str] = []
    job = job_with(HEAD + SAME.format(name="mine", after=name), "softmax")
    assert isinstance(compile_kernel(job, watch=lambda name, _: seen.append(name)), Artifact)
    assert "mine" not in seen


WRONG = {
    "raises": ("return 1 / 0", "pass mine of mine.py fails: ZeroDivisionError: .* in line 9"),
    "exits": ("raise SystemExit(3)", "pass mine of mine.py fails: SystemExit: 3"),
    "recurses": ("return mine.run(func, target)", "pass mine of mine.py fails: RecursionError"),
    "gives nothing": ("return None", "pass mine gives NoneType, not a function of the IR"),
    "gives no IR": (
        'return Func(func.name, func.params, "nothing", func.attrs)',
        "pass mine gives what is no IR: ",
    ),
    "breaks a rule": (
        "return Func(func.name, func.params[:-1], func.body, func.attrs)",
        "pass mine breaks a rule of the stage flat: ",
    ),
    "changes parameters": (
        "one, other, *rest = func.params\n"
        "return Func(func.name, (other, one, *rest), func.body, func.attrs)",
        "pass mine changes the parameters",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_pass_that_goes_wrong_is_one_line_of_its_kernel(case: str) -> None:
    body, why = WRONG[case]
    built = compile_kernel(job_with(mine(body), "add"))
    assert isinstance(built, BuildFailure)
    assert (built.status, built.stage) == (Status.COMPILE_ERROR, "PassError")
    assert re.match(why, built.why)
    assert "Traceback" not in built.why


def test_a_pass_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compile_worker.plugins.custom_pass.SECONDS", 0.2)
    built = compile_kernel(job_with(mine("while True:\n    pass")))
    assert isinstance(built, BuildFailure)
    assert (built.status, built.stage) == (Status.COMPILE_TIMEOUT, "PassError")
    assert built.why.startswith("pass mine of mine.py is not done after 0.2 s")


def test_a_file_that_a_worker_cannot_run_is_a_failure_of_its_kernels() -> None:
    good = mine("return func")
    job = job_with(good)
    built = compile_kernel(
        replace(job, plugins=(PluginText("mine.py", b"import nothing_like_this"),))
    )
    assert isinstance(built, BuildFailure)
    assert built.status is Status.COMPILE_ERROR
    assert "mine.py cannot be loaded: ModuleNotFoundError" in built.why


def test_a_program_brings_the_files_of_its_kernels_once() -> None:
    job = job_with(mine("return 1 / 0"))
    program = ProgramJob(
        kernels=(job, replace(job, symbol="other")), calls=(), buffers=1, target=SIM
    )
    assert program.plugins == job.plugins
    built = compile_program(program)
    assert isinstance(built, BuildFailure)
    assert "pass mine of mine.py fails" in built.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SAME.format(name="a", after="flaten"), "there is no pass 'flaten' for a to go behind"),
        (SAME.format(name="flatten", after="flatten"), "there already is a pass 'flatten'"),
        (2 * SAME.format(name="a", after="flatten"), None),
        (SAME.format(name="a", after="flatten") + "b = a", None),
        (
            SAME.format(name="a", after="flatten")
            + "b = a\n"
            + SAME.format(name="a", after="simplify"),
            "declares a twice",
        ),
    ],
)
def test_where_a_pass_can_go_is_asked_when_its_file_is_loaded(text: str, why: str | None) -> None:
    if why is None:
        assert len(plugin_of("mine.py", (HEAD + text).encode()).passes) == 1
        return
    with pytest.raises(SettingsError, match=why):
        plugin_of("mine.py", (HEAD + text).encode())


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("mine", "3f1c"), "not a SHA-256"),
        (("my pass", 64 * "0"), "it is no name"),
        (("mine", 1), "takes name: str, plugin: str"),
    ],
)
def test_a_step_that_names_no_pass_is_refused(args: tuple[str, str], why: str) -> None:
    with pytest.raises(ScheduleError, match=why):
        replay(Trace((Step("lower_with", args),)), nest_of(EXAMPLES["add"], SIM), SIM)
