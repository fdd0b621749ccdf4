"""A farm inside the test's process: tracker and devices on one event loop in a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tilefarm.clock import Clock
from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import UnreachableError
from tilefarm.measurement import Counters, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.rpc.caller import Caller
from tilefarm.rpc.security import Security
from tilefarm.target import TARGETS, Target
from tilefarm.trust.tls import Credentials
from tilefarm.trust.tokens import SharedSecret
from tilefarm.watch.operations import UNWATCHED, Operations

from device_server.device.known_kernel import ENTRY, known_kernel
from device_server.device.server import run_device
from device_server.device.settings import DeviceSettings
from device_server.tenancy import OWN, Tenancy
from device_server.tracker.limits import TableLimits
from device_server.tracker.server import run_tracker

TOKEN = "a-token-for-tests"
CREDENTIALS = Credentials(token=TOKEN)
SECURITY = Security(tokens=SharedSecret(TOKEN))


@dataclass(slots=True)
class FakeRunner:
    """A runner whose kernels do what their entry's name says.

    `echo` copies its first input to every output; `brief`, `slow`, `crash`, `broken` and `stuck`
    end as they sound. `seen` lists the jobs that it was given.
    """

    sandbox: str = "none"
    runtime_id: str = "fake"
    seen: list[RunJob] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    closed: bool = False
    target: Target = TARGETS["sim"]

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        blob(job.artifact)
        if job.entry == ENTRY:
            return self.known(job)
        self.seen.append(job)
        match job.entry:
            case "crash":
                return RunFailure(
                    artifact=job.artifact, status=Status.RUN_CRASH, why="signal 11", signal=11
                )
            case "broken":
                raise OSError("the runner itself is broken")
            case "brief":
                time.sleep(0.02)
            case "slow":
                time.sleep(0.2)
            case "stuck":
                with tenancy.stopping(self.release.set):
                    self.release.wait(60)
        return self._echo(job, blob)

    def known(self, job: RunJob) -> Measurement | RunFailure:
        """The known kernel, which is right."""
        known = known_kernel(self.target, b"")
        cycles = known.cycles or 1000
        return Measurement(
            artifact=job.artifact,
            device="fake",
            counters=known.counters.but(cycles=cycles),
            sample_cycles=(cycles,) * job.samples,
        )

    def _echo(self, job: RunJob, blob: Callable[[Digest], Path]) -> Measurement:
        inputs = [b for b in job.buffers if b.role is Role.INPUT and b.content]
        content = blob(inputs[0].content).read_bytes() if inputs and inputs[0].content else b""
        fetched = [b for b in job.buffers if b.role is Role.OUTPUT and b.fetch]
        return Measurement(
            artifact=job.artifact,
            device="fake",
            counters=Counters(cycles=len(content)),
            seconds=(0.001,) * job.repeats,
            outputs=tuple((buffer.name, content) for buffer in fetched),
            run_seconds=0.001,
        )

    def close(self) -> None:
        self.closed = True
        self.release.set()


class Server:
    """One server that runs on the farm's loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        main: Callable[[asyncio.Event, Callable[[str], None]], Awaitable[None]],
    ) -> None:
        self._loop = loop
        self._stopping = asyncio.Event()
        ready: Future[str] = Future()

        async def body() -> None:
            try:
                await main(self._stopping, ready.set_result)
            except BaseException as error:
                if not ready.done():
                    ready.set_exception(error)
                raise

        self._done = asyncio.run_coroutine_threadsafe(body(), loop)
        self.address = ready.result(60)

    def stop(self) -> None:
        """Ends the server and waits for its end."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._done.result(60)

    def close(self) -> None:
        """Ends the server if it has not ended by itself."""
        if not self._done.done():
            self.stop()

    def ended_with(self, seconds: float) -> BaseException | None:
        """What the server raised when it ended by itself."""
        return self._done.exception(seconds)


class Farm(Closing):
    """Starts trackers and devices; a context manager that stops whatever still runs.

    `security` is how servers know callers, `credentials` what devices show to the tracker.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.security = SECURITY
        self.credentials = CREDENTIALS
        self.target: Target = TARGETS["sim"]
        self.events: list[tuple[str, dict[str, object]]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="farm")
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        self._stack.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def log(self, event: str, **fields: object) -> None:
        self.events.append((event, fields))

    def tracker(
        self,
        *,
        listen: str = "127.0.0.1:0",
        limits: TableLimits | None = None,
        calls_per_user: float | None = None,
        state: Path | None = None,
        operations: Operations = UNWATCHED,
        clock: Clock | None = None,
    ) -> Server:
        """A tracker that answers; stopped at the end if not before."""
        return self._serving(
            lambda stopping, ready: run_tracker(
                stopping,
                listen=listen,
                security=self.security,
                on_ready=ready,
                limits=limits,
                calls_per_user=calls_per_user,
                state=state,
                clock=clock,
                log=self.log,
                operations=operations,
            )
        )

    def device(
        self,
        name: str = "sim0",
        *,
        tracker: Server | None = None,
        runner: FakeRunner | None = None,
        settings: Callable[[DeviceSettings], DeviceSettings] = lambda settings: settings,
        operations: Operations = UNWATCHED,
    ) -> Server:
        """A device that answers; registered soon after if it has a tracker."""
        chosen = settings(
            DeviceSettings(
                name=name,
                target=self.target,
                folder=self.folder / name,
                tracker=tracker.address if tracker else None,
                grace_seconds=1.0,
            )
        )
        return self._serving(
            lambda stopping, ready: run_device(
                stopping,
                chosen,
                runner or FakeRunner(target=self.target),
                known_kernel(self.target, b"an artifact that nobody loads"),
                security=self.security,
                credentials=self.credentials,
                on_ready=ready,
                log=self.log,
                operations=operations,
            )
        )

    def _serving(
        self, main: Callable[[asyncio.Event, Callable[[str], None]], Awaitable[None]]
    ) -> Server:
        server = Server(self._loop, main)
        self._stack.callback(server.close)
        return server


@contextmanager
def calling(address: str, credentials: Credentials = CREDENTIALS) -> Iterator[Caller]:
    """Any call to a server, as no client of ours makes it."""
    with closing(Caller(address, credentials, peer="server", lost=UnreachableError)) as caller:
        yield caller


def eventually(condition: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Waits until a condition holds; fails the test when it never does."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.02)
