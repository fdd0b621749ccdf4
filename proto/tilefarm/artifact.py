"""What goes to a compile worker and what comes back: jobs, artifacts and typed build failures.

Every compiled object exports functions of one C type:

    int32_t entry(void* const* buffers, const int64_t* offsets);

`buffers[i]` is a VTA data-buffer handle (from VTABufferAlloc) and `offsets[i]` a byte offset into
it, one pair per parameter: the workload's inputs, then its outputs. 0 means done. Undefined symbols
are those of the VTA runtime ABI only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from tilefarm.digest import Digest, canonical_json
from tilefarm.measurement import Status
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload


@dataclass(frozen=True, slots=True)
class PluginText:
    """A user's Python file on its way to whoever runs it; `named` is for messages."""

    named: str
    text: bytes

    @property
    def digest(self) -> Digest:
        return Digest.of(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileJob:
    """One kernel to compile. The default trace of an operator that has no space is empty.

    `plugins` are the files of the user's passes that the trace names, by their digests: they are
    how it can be compiled, and no part of what is.
    """

    workload: Workload
    trace: Trace
    target: Target
    symbol: str = "kernel"
    plugins: tuple[PluginText, ...] = ()

    @property
    def kernel_count(self) -> int:
        """How many kernels are compiled: what a limit of time is in proportion to."""
        return 1

    @property
    def digest(self) -> Digest:
        """Identity of the job: same digest, same artifact."""
        return Digest.of_json(
            [
                self.workload.digest.hex,
                self.trace.digest.hex,
                self.target.digest.hex,
                self.symbol,
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One step of a whole-network program: a kernel, and where each of its parameters lies.

    `arguments[i]` = (index of the program's buffer, byte offset in it) for parameter i of the
    kernel.
    """

    kernel: str
    arguments: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramJob:
    """A whole network in one shared object: kernels, and an entry that calls them in order.

    The entry has the C type above with one (handle, offset) pair per program buffer. So have
    `call_entries`, each of which makes one of the calls and waits for it: called in order they do
    what the entry does, but nothing of one call happens beside another. With `stages` each makes as
    many calls as the stages say in turn, within which they overlap.
    """

    kernels: tuple[CompileJob, ...]
    calls: tuple[Call, ...]
    buffers: int
    target: Target
    entry: str = "network"
    stages: tuple[int, ...] = ()

    @property
    def kernel_count(self) -> int:
        """How many kernels are compiled; a program without one is still a piece of work."""
        return max(1, len(self.kernels))

    @property
    def plugins(self) -> tuple[PluginText, ...]:
        """Those of its kernels, each once."""
        return tuple(dict.fromkeys(each for kernel in self.kernels for each in kernel.plugins))

    @property
    def call_entries(self) -> tuple[str, ...]:
        """Names of the entries that make one call each, or one stage."""
        return tuple(f"{self.entry}_call{at}" for at in range(len(self.call_spans)))

    @property
    def call_spans(self) -> tuple[slice, ...]:
        """Which of the calls each of `call_entries` makes."""
        ends = list(accumulate(self.stages or (1,) * len(self.calls)))
        return tuple(slice(begin, end) for begin, end in pairwise([0, *ends]))

    @property
    def digest(self) -> Digest:
        return Digest.of_json(
            [
                [k.digest.hex for k in self.kernels],
                [[c.kernel, c.arguments] for c in self.calls],
                self.buffers,
                self.entry,
                *([self.stages] if self.stages else []),
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A shared object ready for a device, with what a cost model may learn from.

    `features` are (name, value) of the lowered kernel, sorted by name.
    `build_seconds` is the wall time of the compilation.
    `digest` is the identity of the code.
    """

    job: Digest
    code: bytes
    symbols: tuple[str, ...]
    features: tuple[tuple[str, float], ...] = ()
    build_seconds: float = 0.0
    digest: Digest = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", Digest.of(self.code))


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFailure:
    """A compilation that ended without an artifact.

    `status` is COMPILE_ERROR, COMPILE_CRASH or COMPILE_TIMEOUT; INFRA_ERROR where it was not the
    job's fault, but a full disk's, or that of whoever kills compile processes.

    `stage` names the pass or the step that refused, `constraint` the named limit if it was one.
    `kept` is the digest of what was kept of a crash or a hang, for `tilefarm replay`.
    """

    job: Digest
    status: Status
    stage: str
    why: str
    constraint: str = ""
    build_seconds: float = 0.0
    kept: Digest | None = None

    def to_json(self) -> str:
        return canonical_json({"stage": self.stage, "why": self.why, "constraint": self.constraint})
