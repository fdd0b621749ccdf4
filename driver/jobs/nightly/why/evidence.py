"""What a night keeps of each kernel, so that a later one can say what is different about it.

The code of a night is gone in the morning; what it made of a schedule is kept as text.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from tilefarm.artifact import CompileJob, PluginText
from tilefarm.digest import canonical_json
from tilefarm.documents import decoded
from tilefarm.errors import TilefarmError
from tilefarm.target import Target

from compile_worker.compiler import lowered
from compile_worker.errors import Refused
from compile_worker.ir.printer import show
from driver.jobs.nightly.records import ChosenSchedule
from driver.program.vta.stream import stream_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One kernel as a night's code has made it.

    Attributes:
        workload: its name.
        lowered: its IR after all passes, as text; "" if the schedule does not lower any more.
        why: it does not; "" where it does, and in what older versions have kept.
        causes: (cause, cycles) of one run by itself, see `CycleBreakdown`; empty where nothing
            counts cycles.
    """

    workload: str
    lowered: str
    causes: tuple[tuple[str, int], ...] = ()
    why: str = ""

    @property
    def content(self) -> bytes:
        """As it is kept."""
        document = {
            "workload": self.workload,
            "lowered": self.lowered,
            "causes": dict(self.causes),
            **({"why": self.why} if self.why else {}),
        }
        return canonical_json(document).encode()

    @classmethod
    def read(cls, content: bytes) -> Evidence:
        """What `content` was.

        Raises:
            ValueError: it was something else.
        """
        document: Any = decoded(content)
        try:
            workload, text = str(document["workload"]), str(document["lowered"])
            causes = tuple((str(name), int(n)) for name, n in document["causes"].items())
            why = str(document.get("why", ""))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not what a night has kept of a kernel: {error}") from None
        return cls(workload=workload, lowered=text, causes=causes, why=why)


def evidence_of(
    chosen: ChosenSchedule,
    target: Target,
    before: Evidence | None = None,
    plugins: tuple[PluginText, ...] = (),
) -> Evidence:
    """What this code makes of a schedule.

    Args:
        plugins: the files of the users' passes that the schedule names. They run in this process,
            as they did in that of the search and in its workers.
        before: of the same schedule on the same target; where the code is the same, so are its
            cycles, and nothing is run.
    """
    name = chosen.workload.name
    job = CompileJob(workload=chosen.workload, trace=chosen.trace, target=target, plugins=plugins)
    try:
        text = show(lowered(job))
    except (TilefarmError, Refused) as error:
        why = error.what if isinstance(error, TilefarmError) else str(error)
        return Evidence(workload=name, lowered="", why=why.partition("\n")[0])
    if before is not None and before.lowered == text:
        return before
    return Evidence(workload=name, lowered=text, causes=_causes(chosen, target))


def _causes(chosen: ChosenSchedule, target: Target) -> tuple[tuple[str, int], ...]:
    """On the simulator, once; nothing where that cannot be."""
    if not (target.has_accelerator and target.model.counts_cycles):
        return ()
    try:
        spent = stream_of(chosen.workload, chosen.trace, target).spent
    except TilefarmError:
        return ()
    return tuple((cause, cycles) for cause, cycles in asdict(spent).items() if cycles)
