"""Compile jobs as JSON documents and back, to be kept with a run and compiled again.

A document holds no code: passes of a user's are those that this process was told to load.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tilefarm.artifact import Call, CompileJob, ProgramJob
from tilefarm.target import target_from_document
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.plugins.passes import plugins_of

if TYPE_CHECKING:
    from compile_worker.worker import Job


def job_document(job: Job) -> dict[str, Any]:
    """The job as plain JSON values."""
    if isinstance(job, ProgramJob):
        return {
            "kernels": [job_document(kernel) for kernel in job.kernels],
            "calls": [[call.kernel, call.arguments] for call in job.calls],
            "buffers": job.buffers,
            "target": json.loads(job.target.to_json()),
            "entry": job.entry,
            "stages": job.stages,
        }
    return {
        "workload": json.loads(job.workload.to_json()),
        "trace": json.loads(job.trace.to_json()),
        "target": json.loads(job.target.to_json()),
        "symbol": job.symbol,
    }


def job_from_document(document: dict[str, Any]) -> Job:
    """The job that `job_document` wrote.

    Raises:
        ValueError, KeyError, TypeError, TargetError: the document is not a job.
    """
    if "kernels" not in document:
        return _kernel(document)
    return ProgramJob(
        kernels=tuple(_kernel(each) for each in document["kernels"]),
        calls=tuple(
            Call(kernel=kernel, arguments=tuple((buffer, start) for buffer, start in arguments))
            for kernel, arguments in document["calls"]
        ),
        buffers=document["buffers"],
        target=target_from_document(document["target"], where="job"),
        entry=document["entry"],
        stages=tuple(document.get("stages", ())),
    )


def _kernel(document: dict[str, Any]) -> CompileJob:
    trace = Trace.from_json(json.dumps(document["trace"]))
    return CompileJob(
        workload=Workload.from_json(json.dumps(document["workload"])),
        trace=trace,
        target=target_from_document(document["target"], where="job"),
        symbol=document["symbol"],
        plugins=plugins_of(trace),
    )
