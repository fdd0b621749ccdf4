"""The process that plays the accelerator of children: it keeps account of what it did."""

from __future__ import annotations

from tilefarm.closing import Closing

from device_server.runner.connection import Connection
from device_server.runner.frames import Reply, account_request, serve_request
from device_server.runner.process import ChildProcess


class AcceleratorProcess(Closing):
    """A started accelerator and the connection to it, which its children have not.

    It plays for one child after the other, as it never loads what they do, and begins anew for
    each; all of one tenancy, so that what a lease may have done to it ends with the lease.

    Args:
        pid: of a child of this process; connection: its other side is the accelerator's.
    """

    def __init__(self, pid: int, connection: Connection) -> None:
        self.process = ChildProcess(pid)
        self.connection = connection

    def serve(self, child: int, memory: int) -> None:
        """From now on it is the accelerator of another child; what it did for others is forgotten.

        Args:
            child: the other side of the child's socket; memory: the file for the buffers of both.
        """
        self.connection.send(serve_request(child, memory))

    def account(self, within_seconds: float) -> Reply:
        """What it did since this was asked last, or why it cannot work.

        Whatever it does now is a part of it.

        Raises:
            ChildGone: it has died. ChildSilent: it does not come to an end in time.
            InfraError: it did more than can be told.
        """
        return self.connection.ask(account_request(), within_seconds)

    def close(self) -> None:
        """Kill it and let go of everything. May be called again."""
        self.process.kill()
        self.process.wait()
        self.connection.close()
