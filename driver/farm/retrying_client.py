"""A leased device's client that outlives its connection: what was asked is asked again.

A device keeps the answers of the runs that it was asked for. A network that is cut for a while
costs time, and no run: whoever asks with the same request id gets the answer that is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import DeviceLostError, DeviceSilentError, LeaseError
from tilefarm.rpc.device_calls import RunReply

from device_server.device.batch import Ask

_PAUSE_SECONDS: Final = 0.5

_Answer = TypeVar("_Answer")


class Client(Protocol):
    """What a device's client offers; see `device_server.device.client.DeviceClient`."""

    def send_ahead(self, blobs: Mapping[Digest, bytes]) -> None:
        """Upload what a run with these blobs cannot bring along."""
        ...

    def run_batch(self, asked: Sequence[Ask]) -> list[RunReply]:
        """Run the first of these jobs, one at least; raises a FarmFault when the device is lost."""
        ...

    def confirm(self) -> None:
        """Have it confirm them; raises a SuspectError when they may be wrong."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class RetryingClient:
    """Asks again while the device is silent and its lease may live; one thread at a time.

    Args:
        connect: a client with a connection of its own.
        void: asks the tracker why the lease is void; empty while it is good, or nobody knows.
        patience_seconds: that a device may be silent.
        wait: sleeps for so many seconds; true if nothing more shall be asked.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        *,
        void: Callable[[], str],
        patience_seconds: float,
        wait: Callable[[float], bool],
        clock: Clock,
    ) -> None:
        self._connect = connect
        self._void = void
        self._patience_seconds = patience_seconds
        self._wait = wait
        self._clock = clock
        self._client = connect()

    def send_ahead(self, blobs: Mapping[Digest, bytes]) -> None:
        """As `Client.send_ahead`."""
        self._asked(lambda client: client.send_ahead(blobs))

    def run(self, one: Ask) -> RunReply:
        """The answer of one run."""
        (answer,) = self._asked(lambda client: client.run_batch([one]))
        return answer

    def run_batch(self, asked: Sequence[Ask]) -> list[RunReply]:
        """As `Client.run_batch`, tried once: what is asked next is asked on a new connection.

        Raises:
            DeviceSilentError: of none it is known whether it was begun.
        """
        try:
            return self._client.run_batch(asked)
        except DeviceSilentError:
            self._connect_anew()
            raise

    def confirm(self) -> None:
        """As `Client.confirm`."""
        self._asked(lambda client: client.confirm())

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _asked(self, ask: Callable[[Client], _Answer]) -> _Answer:
        """The answer, whenever it comes.

        Raises:
            DeviceLostError: the device is gone, or was silent for too long.
            LeaseError: the lease is void.
        """
        silent_since: float | None = None
        while True:
            try:
                return ask(self._client)
            except DeviceSilentError as error:
                now = self._clock.seconds()
                silent_since = now if silent_since is None else silent_since
                seconds = now - silent_since
                if seconds >= self._patience_seconds:
                    raise DeviceLostError(
                        f"{error.what}; for {seconds:.0f} s now", error.hint
                    ) from None
                if why := self._void():
                    raise LeaseError(f"{error.what}; {why}") from None
                if self._wait(_PAUSE_SECONDS):
                    raise
                self._connect_anew()

    def _connect_anew(self) -> None:
        self._client.close()
        self._client = self._connect()
