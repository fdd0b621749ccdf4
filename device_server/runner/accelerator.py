"""The process that plays one child's accelerator: it keeps account of what it did."""

from __future__ import annotations

from tilefarm.closing import Closing

from device_server.runner.connection import Connection
from device_server.runner.frames import Reply, account_request
from device_server.runner.process import ChildProcess


class Accelerator(Closing):
    """A started accelerator and the connection to it, which its child has not.

    Args:
        pid: of a child of this process; connection: its other side is the accelerator's.
    """

    def __init__(self, pid: int, connection: Connection) -> None:
        self.process = ChildProcess(pid)
        self._connection = connection

    def account(self, within_seconds: float) -> Reply:
        """What it did since this was asked last, or why it cannot work.

        Whatever it does now is a part of it.

        Raises:
            ChildGone: it has died. ChildSilent: it does not come to an end in time.
            InfraError: it did more than can be told.
        """
        return self._connection.ask(account_request(), within_seconds)

    def close(self) -> None:
        """Kill it and let go of everything. May be called again."""
        self.process.kill()
        self.process.wait()
        self._connection.close()
