"""Objects for aarch64 and armv7, linked and run under an emulator, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from kit.kernels import numpy_operators, qlinear
from kit.kernels.matrices import OF_MATRICES
from kit.kernels.nests import EXAMPLES, SIM, conv2d, inputs_of, real
from kit.kernels.runtime_double import outputs_like
from kit.kernels.schedules import Tiling
from kit.kernels.scripts import IN_LOCKSTEP, SCRIPTS
from kit.objects.foreign import MACHINES, Array, Loader, loader, no_other_linker
from kit.objects.hosts import ARM
from tilefarm.artifact import Artifact, Call, CompileJob, ProgramJob
from tilefarm.dtype import DType
from tilefarm.target import Host, Target, load_target
from tilefarm.trace import Step, Trace

from compile_worker.codegen import objects
from compile_worker.codegen.link import link, shared_object
from compile_worker.compiler import compile_kernel, compile_program
from compile_worker.ir.interpret import interpret
from compile_worker.machines.cpu.space import cpu_space
from compile_worker.te import nest_of
from device_server.device.elf import Machine, rejection
from tuner.sampler import Sampler

from .references import ElfFile

PROCESSORS = {
    "aarch64": "cortex-a53",
    "aarch64dot": "neoverse-n1",
    "aarch64i8mm": "max",
    "armv7": "cortex-a9",
}
"""What the emulator imitates for a host: no more than the host is said to have."""

CPU = load_target("cpu:neoverse-n1")

Loaders = Callable[[str], Loader]


@pytest.fixture(scope="module")
def loaders(tmp_path_factory: pytest.TempPathFactory) -> Loaders:
    made: dict[str, Loader] = {}

    def find(name: str) -> Loader:
        missing = MACHINES[name].missing
        if missing:
            pytest.skip(f"no {missing} on this machine")
        if name not in made:
            made[name] = loader(name, tmp_path_factory.mktemp(name))
        return made[name]

    return find


def architecture(host: Host) -> str:
    return host.triple.split("-", 1)[0]


def compiled(name: str, target: Target, trace: Trace = Trace()) -> Artifact:  # noqa: B008
    work = EXAMPLES[name]
    made = compile_kernel(CompileJob(workload=work, trace=trace, target=target))
    assert isinstance(made, Artifact), made
    return made


SMALL = ("gemm of primes", "softmax", "stencil", "rows in their output", "dot", "branches")
"""Of users' scripts."""

FEW = ("conv2d", "dense", "quantize", "quantize_windows", "dequantize", "avg_pool2d", "relayout")


@pytest.mark.parametrize(
    "name",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES],
)
@pytest.mark.parametrize("host", ARM)
def test_cpu_kernels_do_what_the_interpreter_does(
    host: str, name: str, loaders: Loaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a device's gate lets them in, which no other linker than ours has seen."""
    work, target = EXAMPLES[name], replace(SIM, host=ARM[host])
    with monkeypatch.context() as alone:
        alone.setattr("compile_worker.codegen.link.shared_object", no_other_linker)
        artifact = compiled(name, target)
    assert rejection(artifact.code, Machine.of_triple(target.host.triple)) is None
    runs = loaders(architecture(ARM[host]))
    arrays = inputs_of(work)
    made = outputs_like({spec.name: (spec.shape, spec.dtype.value) for spec in work.outputs})
    after, _ = runs.call(
        artifact.code, artifact.symbols[0], [*arrays.values(), *made.values()], PROCESSORS[host]
    )
    (out,) = interpret(nest_of(work, target), arrays).values()
    np.testing.assert_array_equal(after[-1], out.reshape(after[-1].shape))


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.INT8])
@pytest.mark.parametrize("host", [name for name in ARM if name != "armv7"])
def test_layers_of_either_sign_are_right(host: str, dtype: DType, loaders: Loaders) -> None:
    runs = loaders("aarch64")
    work, target = qlinear.convolution(size=(3, 5), dtype=dtype), replace(CPU, host=ARM[host])
    space = cpu_space(work, target)
    assert space is not None
    job = CompileJob(workload=work, trace=space.trace(space.default), target=target)
    made = compile_kernel(job)
    assert isinstance(made, Artifact), made
    arrays = inputs_of(work)
    wanted = numpy_operators.run(work, arrays)
    buffers = [*arrays.values(), np.zeros_like(wanted)]
    after, _ = runs.call(made.code, made.symbols[0], buffers, PROCESSORS[host])
    np.testing.assert_array_equal(after[-1], wanted.reshape(after[-1].shape))


@pytest.mark.parametrize("name", OF_MATRICES)
def test_products_of_matrices_are_right(name: str, loaders: Loaders) -> None:
    """The default, which has them, and the same block of sums by dot products."""
    runs = loaders("aarch64")
    work, target = OF_MATRICES[name], replace(CPU, host=ARM["aarch64i8mm"])
    space = cpu_space(work, target)
    assert space is not None
    arrays = inputs_of(work)
    wanted = numpy_operators.run(work, arrays)
    assert space.default["matrices"] == 1
    for point in (space.default, {**space.default, "matrices": 0}):
        job = CompileJob(workload=work, trace=space.trace(point), target=target)
        made = compile_kernel(job)
        assert isinstance(made, Artifact), made
        buffers = [*arrays.values(), np.zeros_like(wanted)]
        after, _ = runs.call(made.code, made.symbols[0], buffers, PROCESSORS["aarch64i8mm"])
        np.testing.assert_array_equal(after[-1], wanted.reshape(after[-1].shape), str(point))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SMALL, *IN_LOCKSTEP])
def test_scripts_of_users_are_right(name: str, loaders: Loaders) -> None:
    """Their default and two points of their spaces."""
    runs, work = loaders("aarch64"), {**SCRIPTS, **IN_LOCKSTEP}[name]
    rng = np.random.default_rng(0)
    arrays = {
        each.name: rng.integers(-90, 90, each.shape).astype(each.dtype.value)
        if each.dtype is DType.INT8
        else rng.standard_normal(each.shape, np.float32)
        for each in work.inputs
    }
    (wanted,) = interpret(nest_of(work, CPU), arrays).values()
    made = cpu_space(work, CPU)
    assert made is not None
    for point in (made.default, *Sampler(made.space).sample(2, rng)):
        artifact = compile_kernel(CompileJob(workload=work, trace=made.trace(point), target=CPU))
        assert isinstance(artifact, Artifact), artifact
        buffers = [*arrays.values(), np.zeros_like(wanted)]
        after, _ = runs.call(artifact.code, artifact.symbols[0], buffers, PROCESSORS["aarch64dot"])
        np.testing.assert_array_equal(after[-1], wanted, err_msg=str(point))


@pytest.mark.parametrize("host", ["aarch64", "armv7"])
def test_functions_tell_denormals_from_zero(host: str, loaders: Loaders) -> None:
    runs = loaders(host)
    x = np.full((1, 33), 1e-40, np.float32) * np.array([1, -1, 0] * 11, np.float32)
    work = real("real_map", x.shape, {"function": "sign"}, x=x.shape)
    job = CompileJob(workload=work, trace=Trace(), target=replace(SIM, host=ARM[host]))
    made = compile_kernel(job)
    assert isinstance(made, Artifact), made
    arrays = [x, np.zeros_like(x)]
    after, _ = runs.call(made.code, made.symbols[0], arrays, PROCESSORS[host])
    np.testing.assert_array_equal(after[-1], [[1, -1, 0] * 11])


KERNELS = {
    "few keys": (conv2d(2, 2, 4, 8), Tiling(co=2, h=2, slots=2, acc_slots=2)),
    "keys to divide": (conv2d(2, 2, 6, 6), Tiling(co=2, h=6, w=2, slots=2, acc_slots=2)),
}
"""The second has more micro-op kernels at a site than the runtime tells apart by one number."""


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("host", ["aarch64", "armv7"])
def test_kernels_ask_the_runtime_for_the_same_on_every_host(
    host: str, kernel: str, loaders: Loaders
) -> None:
    work, tiling = KERNELS[kernel]
    trace = tiling.trace()
    arrays = [*inputs_of(work).values(), np.zeros(work.outputs[0].shape, np.int8)]
    logs = []
    for target, runs in ((SIM, loaders("x86_64")), (replace(SIM, host=ARM[host]), loaders(host))):
        made = compile_kernel(CompileJob(workload=work, trace=trace, target=target))
        assert isinstance(made, Artifact), made
        _, log = runs.call(made.code, made.symbols[0], arrays)
        logs.append(log)
    assert logs[0] == logs[1]
    assert logs[0].count("gemm") > 0


@pytest.mark.parametrize("host", ["aarch64", "armv7"])
def test_programs_are_the_same_on_every_host_by_either_linker(host: str, loaders: Loaders) -> None:
    """Kernels on the accelerator and parallel ones on the processor: constants, memory, calls."""
    conv, add = KERNELS["keys to divide"][0], EXAMPLES["add"]
    tiled = KERNELS["keys to divide"][1].trace()
    rows = Trace((Step("reorder", ("out_h", "out_co")), Step("parallel", ("out_h",))))
    arrays = [*inputs_of(conv).values(), np.zeros(conv.outputs[0].shape, np.int8)]
    arrays += [*inputs_of(add).values(), np.zeros(add.outputs[0].shape, np.int8)]
    places = tuple((at, 0) for at in range(len(arrays)))

    def answers(
        on: str, linking: Callable[[bytes, Host, Collection[str]], bytes]
    ) -> tuple[list[Array], str]:
        target = replace(SIM, host=ARM.get(on, SIM.host))
        kernels = (
            CompileJob(workload=conv, trace=tiled, target=target, symbol="conv"),
            CompileJob(workload=add, trace=rows, target=target, symbol="add"),
        )
        calls = (
            Call(kernel="conv", arguments=places[:-3]),
            Call(kernel="add", arguments=places[-3:]),
        )
        job = ProgramJob(kernels=kernels, calls=calls, buffers=len(arrays), target=target)
        with mock.patch.object(objects, "link", linking):
            made = compile_program(job)
        assert isinstance(made, Artifact), made
        return loaders(on).call(made.code, made.symbols[0], arrays)

    wanted, wanted_log = answers("x86_64", link)
    (sums,) = interpret(nest_of(add, SIM), inputs_of(add)).values()
    np.testing.assert_array_equal(wanted[-1], sums)
    for linking in (link, lambda code, host, _: shared_object(code, host)):
        found, log = answers(host, linking)
        assert log == wanted_log
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("host", ["aarch64", "armv7"])
def test_parallel_kernels_run_alone_where_nobody_shares(host: str, loaders: Loaders) -> None:
    runs = loaders(host)
    work = EXAMPLES["add"]
    trace = Trace((Step("reorder", ("out_h", "out_co")), Step("parallel", ("out_h",))))
    artifact = compiled("add", replace(SIM, host=ARM[host]), trace)
    arrays = inputs_of(work)
    out = np.zeros(work.outputs[0].shape, np.int8)
    after, _ = runs.call(artifact.code, artifact.symbols[0], [*arrays.values(), out])
    (wanted,) = interpret(nest_of(work, SIM), arrays).values()
    np.testing.assert_array_equal(after[-1], wanted)


@pytest.mark.parametrize("host", ARM)
def test_softmax_with_denormals_is_right(host: str, loaders: Loaders) -> None:
    """32-bit NEON takes denormals for zero: its float vectors may not be used."""
    runs = loaders(architecture(ARM[host]))
    work, target = EXAMPLES["softmax"], replace(SIM, host=ARM[host])
    arrays = {**inputs_of(work), "table": np.exp(-np.arange(256) * 0.4).astype(np.float32)}
    assert (arrays["table"] < np.finfo(np.float32).tiny).any()
    out = np.zeros(work.outputs[0].shape, np.float32)
    artifact = compiled("softmax", target)
    after, _ = runs.call(artifact.code, artifact.symbols[0], [*arrays.values(), out])
    (wanted,) = interpret(nest_of(work, target), arrays).values()
    np.testing.assert_array_equal(after[-1], wanted)


@pytest.mark.parametrize("host", ARM)
def test_shared_objects_need_the_runtime_alone_and_are_reproducible(host: str) -> None:
    target = replace(SIM, host=ARM[host])
    for name in ("conv2d", "quantize", "softmax"):
        one, other = compiled(name, target), compiled(name, target)
        assert one.code == other.code
        assert one.digest == other.digest
        asked = {name for name, defined, _ in ElfFile(one.code).symbols() if name and not defined}
        assert asked == {"VTATLSCommandHandle", "VTABufferCPUPtr"}


def test_the_loader_is_warning_free_and_runs_here(loaders: Loaders, tmp_path: Path) -> None:
    runs = loaders("x86_64")
    artifact = compiled("add", SIM)
    arrays = inputs_of(EXAMPLES["add"])
    out = np.zeros(EXAMPLES["add"].outputs[0].shape, np.int8)
    after, log = runs.call(artifact.code, artifact.symbols[0], [*arrays.values(), out])
    (wanted,) = interpret(nest_of(EXAMPLES["add"], SIM), arrays).values()
    np.testing.assert_array_equal(after[-1], wanted)
    assert log == ""
