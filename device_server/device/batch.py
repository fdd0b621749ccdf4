"""Runs that are asked for together: what is asked, what fits into a call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tilefarm.digest import Digest
from tilefarm.measurement import RunJob
from tilefarm.rpc import device_calls
from tilefarm.trust.signing import Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A job, the id of this run and no other, and what the job names.

    `candidate` is what logs and traces call it.
    """

    job: RunJob
    request_id: str
    blobs: Mapping[Digest, bytes]
    candidate: str = ""


def fitting(
    asked: Sequence[Ask],
    *,
    claim: device_calls.Claim,
    there: Collection[Digest],
    most_nbytes: int,
    sign: Signer,
) -> list[device_calls.Run]:
    """The first ones, as calls that together bring no more than that; one at least.

    Args:
        there: blobs that the device has. What one run brings, those after it need not bring.
    """
    there, nbytes = set(there), 0
    runs: list[device_calls.Run] = []
    for one in asked[: device_calls.MOST_RUNS]:
        brought = tuple(content for digest, content in one.blobs.items() if digest not in there)
        nbytes += sum(map(len, brought))
        if runs and nbytes > most_nbytes:
            break
        there.update(one.blobs)
        runs.append(
            device_calls.Run(
                claim=claim,
                request_id=one.request_id,
                job=one.job,
                signature=sign(one.job.artifact),
                blobs=brought,
                candidate=one.candidate,
            )
        )
    return runs
