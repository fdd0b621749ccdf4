"""What a run leaves in its outputs: a file in memory that the child writes and its parent reads."""

from __future__ import annotations

import os

from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.measurement import Role, RunJob, Status

from device_server.runner.verdicts import Blob, RunProblem, describe_mismatch


class OutputFile(Closing):
    """Room for the outputs of a job: all samples of the first one, then of the next."""

    def __init__(self, job: RunJob) -> None:
        outputs = (spec.nbytes for spec in job.buffers if spec.role is Role.OUTPUT)
        self.descriptor = os.memfd_create("vta-runner-results", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.descriptor, sum(outputs) * job.samples)
        except OSError:
            self.close()
            raise

    def outputs(self, job: RunJob, blob: Blob) -> tuple[tuple[str, bytes], ...] | RunProblem:
        """Those that are wanted, by their names, if all are what is expected."""
        outputs: list[tuple[str, bytes]] = []
        offset = 0
        for spec in job.buffers:
            if spec.role is not Role.OUTPUT:
                continue
            nbytes = spec.nbytes * job.samples
            if spec.expected is not None or spec.fetch:
                content = self._read(offset, nbytes)
                if spec.expected is not None and Digest.of(content) != spec.expected:
                    mismatch = describe_mismatch(spec, content, blob)
                    return RunProblem(Status.WRONG_RESULT, mismatch, mismatch=mismatch)
                if spec.fetch:
                    outputs.append((spec.name, content))
            offset += nbytes
        return tuple(outputs)

    def first_sample(self, job: RunJob) -> dict[int, bytes]:
        """What the first sample of such a job gave, by the buffer's place among all."""
        contents: dict[int, bytes] = {}
        offset = 0
        for index, spec in enumerate(job.buffers):
            if spec.role is Role.OUTPUT:
                contents[index] = self._read(offset, spec.nbytes)
                offset += spec.nbytes * job.samples
        return contents

    def close(self) -> None:
        """Forget them. May be called again."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1

    def _read(self, offset: int, nbytes: int) -> bytes:
        pieces = []
        while nbytes and (piece := os.pread(self.descriptor, nbytes, offset)):
            pieces.append(piece)  # The system gives at most 2 GiB at once.
            offset, nbytes = offset + len(piece), nbytes - len(piece)
        return b"".join(pieces)
