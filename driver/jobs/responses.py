"""What a Ray dashboard answers, as records: jobs, and the cluster itself.

A reader of an answer raises whatever it meets where the answer is of another shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tilefarm.errors import InfraError

_WORKER_COMMAND: Final = "--python_worker_command="


@dataclass(frozen=True, slots=True, kw_only=True)
class RayJob:
    """One job as Ray knows it.

    Attributes:
        id: as `submit` gave it.
        status: PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED.
        message: what Ray says about that.
        exit_code: of its process; None while it runs, or where none was started.
        began_seconds, ended_seconds: wall time of the cluster; None: not yet.
        metadata: what it was submitted with.
    """

    id: str
    status: str
    message: str
    exit_code: int | None
    began_seconds: float | None
    ended_seconds: float | None
    metadata: Mapping[str, str]

    @property
    def ended(self) -> bool:
        return self.status in ("STOPPED", "SUCCEEDED", "FAILED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a cluster says about itself: living nodes, their CPUs, and the head's Python, a path."""

    nodes: int
    cpus: int
    python: str


def cluster_of(answer: Any) -> Cluster:
    """The cluster that the list of its nodes says.

    Raises:
        InfraError: it has none that lives.
    """
    nodes = answer["data"]["summary"]
    alive = [node for node in nodes if node["raylet"].get("state", "ALIVE") == "ALIVE"]
    if not alive:
        raise InfraError("no node of the cluster is alive", "`ray status` on its head")
    head = next((node for node in alive if node["raylet"].get("isHeadNode")), alive[0])
    return Cluster(
        nodes=len(alive),
        cpus=int(sum(node["raylet"].get("resourcesTotal", {}).get("CPU", 0) for node in alive)),
        python=_python_of(head.get("cmdline", ())),
    )


def jobs_of(answer: Any) -> list[RayJob]:
    """The jobs of a list that were submitted; others are programs that joined."""
    return [job_of(found) for found in answer if found.get("submission_id")]


def job_of(found: Mapping[str, Any]) -> RayJob:
    """One job."""
    began, ended = found.get("start_time"), found.get("end_time")
    return RayJob(
        id=str(found["submission_id"]),
        status=str(found["status"]),
        message=str(found.get("message") or ""),
        exit_code=found.get("driver_exit_code"),
        began_seconds=began / 1000 if began else None,
        ended_seconds=ended / 1000 if ended else None,
        metadata=found.get("metadata") or {},
    )


def _python_of(words: tuple[str, ...]) -> str:
    """The interpreter that a raylet starts its workers with; empty if it does not say."""
    for word in words:
        if word.startswith(_WORKER_COMMAND):
            return word.removeprefix(_WORKER_COMMAND).split(" ")[0]
    return ""
