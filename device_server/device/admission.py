"""What a device takes up of those who ask for runs: so much, in words that may be kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.errors import CapacityError
from tilefarm.measurement import Role, RunJob
from tilefarm.plural import plural
from tilefarm.rpc.device_calls import Run

LONGEST_NAME: Final = 1000
"""Characters of an entry, a buffer, a request: they stand in messages and are remembered."""

MOST_BUFFERS: Final = 4096
"""Of one run; the programs of whole networks have some hundred."""

MOST_PROFILED: Final = 4096
"""Entries that a run calls by themselves; the reply has a row for each."""

MOST_CALLS: Final = 100_000
"""Samples and repeats of one job; the reply has a number for each and is one message."""

MOST_BUFFERS_NBYTES: Final = 2 << 30
"""Of one sample's buffers: the address space of a child, which holds all of them."""

MOST_OUTPUT_NBYTES: Final = 256 << 20
"""Of all samples' outputs: the server looks at them in its own memory."""


def require_modest(call: Run) -> None:
    """Nothing if a run asks for no more than a device gives.

    Raises:
        CapacityError: it does.
    """
    for fault in _excesses(call):
        raise CapacityError(
            f"run {call.job.artifact.short}: {fault}",
            "ask for less in one run, or in shorter words",
        )


def _excesses(call: Run) -> Iterator[str]:
    job = call.job
    for what, count, most in (
        ("buffers", len(job.buffers), MOST_BUFFERS),
        ("entries in a profile", len(job.profile), MOST_PROFILED),
        ("samples", job.samples, MOST_CALLS),
        ("repeats", job.repeats, MOST_CALLS),
        ("bytes in buffers", sum(b.nbytes for b in job.buffers), MOST_BUFFERS_NBYTES),
        ("bytes of outputs", _output_nbytes(job), MOST_OUTPUT_NBYTES),
    ):
        if count > most:
            yield f"{count} {what} are over {most}"
    names = [call.request_id, call.candidate, job.entry, *job.profile]
    longest = max(len(name) for name in (*names, *(buffer.name for buffer in job.buffers)))
    if longest > LONGEST_NAME:
        yield f"a name of {plural(longest, 'character')} is over {LONGEST_NAME}"


def _output_nbytes(job: RunJob) -> int:
    return job.samples * sum(b.nbytes for b in job.buffers if b.role is Role.OUTPUT)
