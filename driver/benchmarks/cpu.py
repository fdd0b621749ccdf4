"""`tilefarm bench cpu`: operators on the processor, one value at a time against vectors."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from tilefarm.artifact import CompileJob
from tilefarm.command_line import whole_from
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, SettingsError
from tilefarm.measurement import BufferSpec, Measurement, Role, RunJob
from tilefarm.plural import plural
from tilefarm.target import Host, Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.codegen.hosts import check_host, this_host
from compile_worker.codegen.parallel import parallel_loop
from compile_worker.compiler import lowered
from compile_worker.emit import kernel_object
from compile_worker.ir.func import Func
from compile_worker.isa import isa_of
from compile_worker.machines.cpu.objects import scalar_object
from compile_worker.machines.cpu.space import cpu_space
from compile_worker.machines.vta.codegen.runtime_abi import RUNTIME
from device_server.runner.runner import Runner, RunnerLimits
from driver.benchmarks.cpu_operators import OPERATORS
from driver.environment import machine
from driver.network import run_workload, sample_inputs
from driver.report.terminal.text_table import text_table
from driver.targets import usable_target

_REPEATS: Final = 51
_SEED: Final = 0
_TIMEOUT_SECONDS: Final = 120.0

_EPILOG: Final = """\
examples:
  tilefarm bench cpu
  tilefarm bench cpu --operators softmax,relayout --repeats 501
  tilefarm bench cpu --cpu x86-64-v3 --cpu x86-64-v4

Seconds are the median of calls in the sandbox, with inputs that have just been written; every
answer is compared with the reference. `scalar` is the same kernel for the target's host without
any vector; threads are those of the last processor's kernels. A processor that this machine is
not ends the benchmark.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("--operators", metavar="NAME,...", help=f"of {', '.join(OPERATORS)}")
    option("--cpu", action="append", metavar="NAME", help="(default: the target's, ours)")
    option("--target", default="sim", metavar="NAME|FILE.json", help="(default: sim)")
    option(
        "--threads",
        type=whole_from(1),
        metavar="N",
        help="of parallel kernels (default: one a core)",
    )
    option(
        "--repeats",
        type=whole_from(1),
        default=_REPEATS,
        metavar="N",
        help=f"(default: {_REPEATS})",
    )
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    target = usable_target(args.target)
    hosts = _hosts(args.cpu, target)
    chosen = _chosen(args.operators)
    figures = []
    threads = args.threads or len(os.sched_getaffinity(0))
    for name, workload in chosen.items():
        figures.append(measure_operator(name, workload, target, hosts, threads, args.repeats))
    if args.json:
        print(json.dumps({"machine": machine(), "operators": [f.document() for f in figures]}))
        return 0
    print(f"machine  {machine()}; median microseconds of {plural(args.repeats, 'call')}")
    for line in table(figures):
        print(line)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFigures:
    """One operator: seconds without vectors, and with those of each host.

    `threads` is how many shared the work of the last host's kernel, if it is made for that.
    """

    name: str
    scalar_seconds: float
    seconds: Mapping[str, float]
    threads: int = 1
    threads_seconds: float | None = None

    def document(self) -> dict[str, Any]:
        """What JSON can say."""
        ratios = {name: self.scalar_seconds / s for name, s in self.seconds.items()}
        return {
            "name": self.name,
            "scalar_seconds": self.scalar_seconds,
            "seconds": dict(self.seconds),
            "times_scalar": ratios,
            "threads": self.threads,
            "threads_seconds": self.threads_seconds,
        }


def measure_operator(
    name: str,
    workload: Workload,
    target: Target,
    hosts: Sequence[Host],
    threads: int,
    repeats: int,
) -> OperatorFigures:
    """Compile an operator for every host and run it, for the last one also on threads.

    Raises:
        InfraError: a kernel does not run here, or gives another answer than the reference.
    """
    scalar = _seconds(workload, target, partial(scalar_object, RUNTIME), repeats)
    by_host = {
        host.cpu: _seconds(workload, replace(target, host=host), kernel_object, repeats)
        for host in hosts
    }
    last = replace(target, host=hosts[-1])
    shared = None
    if threads > 1 and is_parallel(workload, last):
        shared = _seconds(workload, last, kernel_object, repeats, threads)
    return OperatorFigures(
        name=name,
        scalar_seconds=scalar,
        seconds=by_host,
        threads=threads,
        threads_seconds=shared,
    )


def is_parallel(workload: Workload, target: Target) -> bool:
    """Whether threads can share the work of the operator's kernel."""
    job = CompileJob(workload=workload, trace=_trace(workload, target), target=target)
    return parallel_loop(lowered(job)) is not None


def table(figures: Sequence[OperatorFigures]) -> Iterator[str]:
    """A row an operator: microseconds, and how many times faster than without vectors."""
    hosts = list(figures[0].seconds)
    titles = ["operator", "scalar us"]
    for host in hosts:
        titles += [f"{host} us", "x scalar"]
    titles += [f"{figures[0].threads} threads us", "x one"]
    rows = []
    for each in figures:
        row = [each.name, f"{1e6 * each.scalar_seconds:.1f}"]
        for host in hosts:
            seconds = each.seconds[host]
            row += [f"{1e6 * seconds:.1f}", f"{each.scalar_seconds / seconds:.1f}"]
        together = each.threads_seconds
        alone = each.seconds[hosts[-1]]
        row += (
            ["", ""] if together is None else [f"{1e6 * together:.1f}", f"{alone / together:.2f}"]
        )
        rows.append(row)
    yield from text_table(titles, rows)


def _hosts(names: Sequence[str] | None, target: Target) -> list[Host]:
    if names:
        hosts = [replace(target.host, cpu=name) for name in names]
        reasons = [reason for host in hosts for reason in check_host(host)]
        if reasons:
            raise SettingsError(f"--cpu: {'; '.join(reasons)}", "`llc -mcpu=help` lists the names")
        return hosts
    ours = this_host()
    hosts = [target.host]
    if ours.triple == target.host.triple and isa_of(ours) != isa_of(target.host):
        hosts.append(ours)
    return hosts


def _chosen(names: str | None) -> dict[str, Workload]:
    if names is None:
        return {name: make() for name, make in OPERATORS.items()}
    unknown = [name for name in names.split(",") if name not in OPERATORS]
    if unknown:
        raise SettingsError(
            f"--operators: no {', '.join(map(repr, unknown))}", f"some of {', '.join(OPERATORS)}"
        )
    return {name: OPERATORS[name]() for name in names.split(",")}


def _trace(workload: Workload, target: Target) -> Trace:
    """The default of the operator's search space; where it has none, what the compiler takes."""
    made = cpu_space(workload, target)
    return Trace() if made is None else made.trace(made.default)


def _seconds(
    workload: Workload,
    target: Target,
    make: Callable[[Func, str, Target], bytes],
    repeats: int,
    threads: int = 1,
) -> float:
    """Median of the calls of a kernel with the schedule that nobody chose."""
    job = CompileJob(workload=workload, trace=_trace(workload, target), target=target)
    return seconds_of(job, make(lowered(job), job.symbol, target), repeats, threads)


def seconds_of(job: CompileJob, code: bytes, repeats: int, threads: int = 1) -> float:
    """Median of the calls of a kernel's code, whose answer is compared with the reference.

    Raises:
        InfraError: it does not run here, or gives another answer.
    """
    workload, target = job.workload, job.target
    arrays = sample_inputs(workload, _SEED)
    (wanted,) = run_workload(workload, arrays).values()
    with tempfile.TemporaryDirectory(prefix="tilefarm-bench-") as folder:

        def kept(content: bytes) -> Digest:
            digest = Digest.of(content)
            Path(folder, digest.hex).write_bytes(content)
            return digest

        buffers = [
            BufferSpec(
                name=spec.name,
                role=Role.INPUT,
                nbytes=spec.nbytes,
                content=kept(arrays[spec.name].tobytes()),
            )
            for spec in workload.inputs
        ]
        (out,) = workload.outputs
        expected = Digest.of(wanted.tobytes())
        buffers.append(
            BufferSpec(name=out.name, role=Role.OUTPUT, nbytes=out.nbytes, expected=expected)
        )
        run_job = RunJob(
            artifact=kept(code),
            entry=job.symbol,
            buffers=tuple(buffers),
            repeats=max(1, repeats),
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        with Runner(target=target, limits=RunnerLimits(threads=threads)) as runner:
            result = runner.run(run_job, lambda digest: Path(folder, digest.hex))
    if not isinstance(result, Measurement):
        raise InfraError(f"{workload.operator} for {target.host.cpu}: {result.why}")
    return median(result.seconds)
