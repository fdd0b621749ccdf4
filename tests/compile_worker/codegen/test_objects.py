"""Objects: what they leave undefined, that they are reproducible, and hosts other than this one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from kit.golden import Golden
from kit.kernels.nests import EXAMPLES, SIM, conv2d, each_operator_first
from kit.kernels.schedules import Tiling, scheduled
from tilefarm.errors import InfraError, TargetError
from tilefarm.target import Host

from compile_worker.codegen.elf import undefined_symbols
from compile_worker.codegen.link import find_linker, link, shared_object
from compile_worker.codegen.machine import object_code
from compile_worker.emit import kernel_object, kernel_text
from compile_worker.lowering import lower
from compile_worker.machines.vta.codegen.runtime_abi import FUNCTIONS, RUNTIME
from compile_worker.te import nest_of

TESTS = Path(__file__).parents[2]
ARM = Host(triple="aarch64-unknown-linux-gnu", cpu="cortex-a53")
ARM32 = Host(triple="armv7-unknown-linux-gnueabihf", cpu="cortex-a9", features="+neon")
CONV = lower(scheduled(conv2d(2, 2, 4, 8), Tiling(co=2, h=2, slots=2, acc_slots=2)), SIM)


def code_of(name: str, host: Host) -> bytes:
    kernel = lower(nest_of(EXAMPLES[name], SIM), SIM)
    text = f"{RUNTIME.declarations}\n{kernel_text(kernel, 'entry', SIM)}"
    return object_code(text, host, fast_code=True)


@pytest.mark.parametrize("name", each_operator_first(EXAMPLES))
def test_cpu_kernels_call_nothing_but_the_runtime(name: str) -> None:
    assert undefined_symbols(code_of(name, SIM.host)) == {"VTATLSCommandHandle", "VTABufferCPUPtr"}


@pytest.mark.parametrize("host", [ARM, ARM32], ids=["aarch64", "armv7"])
@pytest.mark.parametrize("name", ["quantize", "max_pool2d", "softmax"])
def test_other_processors_need_no_library_either(name: str, host: Host) -> None:
    assert undefined_symbols(code_of(name, host)) <= FUNCTIONS.keys()


def test_accelerator_kernels_call_the_runtime() -> None:
    text = f"{RUNTIME.declarations}\n{kernel_text(CONV, 'entry', SIM)}"
    found = undefined_symbols(object_code(text, SIM.host, fast_code=False))
    assert found == FUNCTIONS.keys()


def test_the_same_kernel_gives_the_same_bytes() -> None:
    assert kernel_object(CONV, "entry", SIM) == kernel_object(CONV, "entry", SIM)


def test_every_worker_makes_the_same_bytes() -> None:
    """Workers are processes of their own, with another order of every set of strings."""
    script = (
        "from kit.kernels.nests import EXAMPLES, SIM\n"
        "from kit.kernels.schedules import Tiling\n"
        "from tilefarm.artifact import CompileJob\n"
        "from tilefarm.trace import Trace\n"
        "from compile_worker.compiler import compile_kernel\n"
        "traces = {'conv2d': Tiling(h=1, w=4).trace(), 'softmax': Trace(), 'conv2d_1x1': Trace()}\n"
        "for name, trace in traces.items():\n"
        "    job = CompileJob(workload=EXAMPLES[name], trace=trace, target=SIM)\n"
        "    print(compile_kernel(job).digest)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(said[0].split()) == 3


def test_a_stranger_is_named() -> None:
    text = "declare float @expf(float)\ndefine float @f() {\n  %x = call float @expf(float 1.0)\n"
    code = object_code(f"{text}  ret float %x\n}}", SIM.host, fast_code=False)
    with pytest.raises(InfraError, match="calls expf, not of the runtime"):
        link(code, SIM.host, FUNCTIONS)


def test_a_linker_that_is_missing_is_named() -> None:
    with pytest.raises(TargetError, match=r"no linker for aarch64.*: looked for aarch64-.*ld.lld"):
        find_linker(ARM, which=lambda name: None)


def test_what_the_linker_says_is_quoted() -> None:
    with pytest.raises(InfraError, match=r"ld failed with 1: .*format not recognized"):
        shared_object(b"not an object", SIM.host)


def test_a_processor_that_llvm_does_not_know() -> None:
    unknown = replace(SIM, host=Host(triple="pdp11-unknown-none", cpu="generic"))
    with pytest.raises(TargetError, match="no code generator for pdp11"):
        kernel_object(CONV, "entry", unknown)


def test_host_code_and_recorders_as_text(golden: Golden) -> None:
    golden(kernel_text(CONV, "entry", SIM))


def test_entry_type_is_the_documented_one() -> None:
    text = kernel_text(CONV, "entry", SIM)
    assert re.search(r"define\s+i32 @entry\(ptr %buffers, ptr %offsets\)", text)
