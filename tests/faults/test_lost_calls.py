"""Whatever is lost of a call that changes something, asking again leaves all as one call does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from kit.counting_ids import CountingIds
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, Server, eventually
from kit.farm.proxy import Proxy
from kit.messages.specimens import blank
from kit.objects.elves import Elf
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import (
    DeviceSilentError,
    LeaseError,
    SuspectError,
    UnreachableError,
)
from tilefarm.lease import Lease
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.rpc import device_calls, methods
from tilefarm.rpc.caller import CHUNK_NBYTES, Caller
from tilefarm.rpc.methods import Method

from device_server.device.batch import Ask
from device_server.device.client import DeviceClient
from device_server.device.settings import DeviceSettings
from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits
from driver.farm.device_messages import Order
from driver.farm.measurer import Measurer
from driver.farm.retrying_client import RetryingClient

from .lost_calls import LOOKING, MUTATING, Loss, Trap

CODE = Elf().build()
LARGE = bytes(2 * CHUNK_NBYTES + 5)
BLOBS = {Digest.of(blob): blob for blob in (LARGE, CODE)}
SOON: Final = TableLimits(device_ttl_seconds=5.0)


PAUSE_SECONDS: Final = 0.2


class TurningRunner(FakeRunner):
    """A runner whose device is right until it is told otherwise."""

    wrong = False

    def known(self, job: RunJob) -> Measurement | RunFailure:
        if self.wrong:
            return RunFailure(artifact=job.artifact, status=Status.WRONG_RESULT, why="one bit")
        return FakeRunner.known(self, job)


@dataclass
class Scene:
    """A tracker and a device, each behind a proxy, and those who use them."""

    farm: Farm
    tracker: Server
    runner: TurningRunner
    way_to_tracker: Proxy
    admin: TrackerClient
    """Straight to the tracker: it sees how things are."""
    user: TrackerClient
    """Through the proxy."""
    device: Server | None = None
    owned: ExitStack = field(default_factory=ExitStack)
    way_to_device: Proxy | None = None
    trap: Trap | None = None
    found: list[object] = field(default_factory=list)

    def serve(self) -> None:
        """A device, which reaches the tracker through the proxy."""

        def through(settings: DeviceSettings) -> DeviceSettings:
            return replace(settings, tracker=self.way_to_tracker.address)

        self.device = self.farm.device(tracker=self.tracker, runner=self.runner, settings=through)
        eventually(lambda: len(self.admin.states()) == 1)

    def lease(self, client: TrackerClient | None = None, owner: str = "holder") -> Lease:
        got = (client or self.admin).acquire(self.farm.target.digest, wait_seconds=60, owner=owner)
        assert got is not None
        return got

    def use(self, lease: Lease) -> RetryingClient:
        """A driver's client of the device, through a proxy."""
        if self.way_to_device is None:
            self.way_to_device = self.owned.enter_context(Proxy(lease.device.address))
        behind = replace(lease, device=replace(lease.device, address=self.way_to_device.address))
        return RetryingClient(
            lambda: DeviceClient(behind, CREDENTIALS),
            void=lambda: "",
            patience_seconds=30.0,
            wait=_slept,
            clock=SystemClock(),
        )

    def spoil(self) -> None:
        """The next call of the method that is tried comes to harm."""
        if self.trap:
            of_tracker = self.trap.method.service == methods.TRACKER
            way = self.way_to_tracker if of_tracker else self.way_to_device
            assert way is not None
            self.trap.arm(way)

    def insist(self, ask: Callable[[], object]) -> None:
        """Ask again as long as the tracker seems to be away, as all its clients do."""
        for _ in range(10):
            try:
                ask()
            except UnreachableError:
                time.sleep(PAUSE_SECONDS)
            else:
                return
        raise AssertionError("nobody answered")

    def state(self) -> dict[str, Any]:
        """All that a call may have changed."""
        overview = self.admin.overview()
        told = self.farm.events
        fences = [int(str(fields["fence"])) for event, fields in told if event == "leased"]
        folder = self.farm.folder / "sim0"
        return {
            "found": self.found,
            "devices": [
                (s.device.name, s.owner, s.draining, s.quarantine, s.resting)
                for s in overview.states
            ],
            "waiting": len(overview.waiting),
            "leases": [fence - fences[0] for fence in fences],
            "runs": [
                (fields["artifact"], fields["status"]) for event, fields in told if event == "ran"
            ],
            "blobs": sorted(path.name for path in folder.glob("blobs/*")),
            "incoming": [path.stat().st_size for path in folder.glob("incoming/*")],
        }


def _slept(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def ask(entry: str, request_id: str) -> Ask:
    return Ask(job=job(entry), request_id=request_id, blobs=BLOBS)


def job(entry: str, *, repeats: int = 1) -> RunJob:
    return RunJob(
        artifact=Digest.of(CODE),
        entry=entry,
        repeats=repeats,
        buffers=(
            BufferSpec(name="x", role=Role.INPUT, nbytes=len(LARGE), content=Digest.of(LARGE)),
            BufferSpec(name="y", role=Role.OUTPUT, nbytes=len(LARGE), fetch=True),
        ),
    )


# What is done with each method; what comes of it must not depend on what is lost.


def register(scene: Scene) -> None:
    scene.spoil()
    scene.serve()
    scene.admin.renew(scene.lease())


def uptime(scene: Scene) -> float:
    """Of the device, as it last told the tracker."""
    usage = scene.admin.states()[0].usage
    return 0.0 if usage is None else usage.up_seconds


def hears_more(scene: Scene, seconds: float) -> bool:
    return uptime(scene) > seconds


def tells_of_quarantine(scene: Scene) -> bool:
    """Whether the tracker has heard of it, which takes until the next heartbeat."""
    return bool(scene.admin.states()[0].quarantine)


def heartbeat(scene: Scene) -> None:
    """A device tells of its quarantine, and hears that somebody has ended it."""
    scene.serve()
    client = scene.use(scene.lease())
    client.send_ahead(BLOBS)
    scene.runner.wrong = True
    with pytest.raises(SuspectError):
        client.run(ask("crash", "r"))
    scene.spoil()
    eventually(partial(tells_of_quarantine, scene))
    eventually(lambda: scene.trap is None or scene.trap.sprung.is_set())
    for _ in range(2):  # with the second one it is known that the reply to the first has arrived
        eventually(partial(hears_more, scene, uptime(scene)))
    scene.runner.wrong = False
    scene.admin.readmit("sim0")
    eventually(lambda: any(event == "recovered" for event, _ in scene.farm.events))


def deregister(scene: Scene) -> None:
    scene.serve()
    assert scene.device is not None
    scene.spoil()
    scene.device.stop()
    eventually(lambda: not scene.admin.states())


def acquire(scene: Scene) -> None:
    """Somebody waits for a device that another one has."""
    scene.serve()
    held = scene.lease()
    trap = scene.trap
    ended = trap.ended if trap and trap.loss is Loss.CONNECTION else -1
    scene.spoil()
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(scene.lease, scene.user, "next")
        # Who waits is a client that lives, once the call that was cut off is over.
        eventually(lambda: trap is None or trap.ended > ended)
        eventually(lambda: len(scene.admin.overview().waiting) == 1)
        scene.admin.release(held)
        got = asked.result(60)
    scene.admin.renew(got)
    scene.found.append(got.fence - held.fence)


def renew(scene: Scene) -> None:
    scene.serve()
    lease = scene.lease()
    scene.spoil()
    scene.insist(lambda: scene.user.renew(lease))


def release(scene: Scene) -> None:
    """A device that was lost twice is not one that was lost three times."""
    scene.serve()
    scene.spoil()
    for _ in range(2):
        lease = scene.lease()
        scene.insist(partial(scene.user.release, lease, device_lost=True, why="gone"))
    with pytest.raises(LeaseError):
        scene.admin.renew(lease)


def drain(scene: Scene) -> None:
    scene.serve()
    scene.spoil()
    scene.insist(lambda: scene.user.drain("sim0", "a new disk"))


def readmit(scene: Scene) -> None:
    scene.serve()
    scene.admin.drain("sim0", "a new disk")
    scene.spoil()
    scene.insist(lambda: scene.user.readmit("sim0"))
    scene.lease()


def upload(scene: Scene) -> None:
    scene.serve()
    client = scene.use(scene.lease())
    scene.spoil()
    client.send_ahead(BLOBS)
    client.send_ahead(BLOBS)


def load_module(scene: Scene) -> None:
    scene.serve()
    lease = scene.lease()
    client = scene.use(lease)
    client.send_ahead(BLOBS)
    assert scene.way_to_device is not None
    address = scene.way_to_device.address
    scene.spoil()
    with closing(Caller(address, CREDENTIALS, peer="device", lost=DeviceSilentError)) as caller:
        call = device_calls.LoadModule(claim=device_calls.Claim.of(lease), artifact=Digest.of(CODE))
        for _ in range(50):
            try:
                verdict = caller.unary(methods.LOAD_MODULE, call, timeout_seconds=60.0)
            except DeviceSilentError:
                # A channel that was cut connects anew only after a while.
                time.sleep(PAUSE_SECONDS)
            else:
                scene.found = [verdict]
                break


def run(scene: Scene) -> None:
    scene.serve()
    client = scene.use(scene.lease())
    client.send_ahead(BLOBS)
    scene.spoil()
    answer = client.run(ask("slow", "r"))
    assert isinstance(answer.outcome, Measurement)
    scene.found += [dict(answer.outcome.outputs)["y"] == LARGE, answer.unchecked]


def run_batch(scene: Scene) -> None:
    """Short runs that are asked for together; each is run once, whatever is asked again."""
    scene.serve()
    client = scene.use(scene.lease())
    client.send_ahead(BLOBS)
    scene.spoil()
    orders = [
        Order(number=n, job=job("echo", repeats=n), blobs=BLOBS, request_id=f"r{n}")
        for n in range(1, 4)
    ]
    measurer = Measurer(client, slot=0, device="sim0", clock=SystemClock())
    while orders:
        done = measurer.run(orders)
        del orders[: len(done)]
        scene.found += [(d.number, type(d.result), d.unchecked) for d in done]


def check(scene: Scene) -> None:
    scene.serve()
    client = scene.use(scene.lease())
    client.send_ahead(BLOBS)
    scene.found.append(client.run(ask("echo", "r")).unchecked)
    scene.spoil()
    client.confirm()
    scene.found.append(client.run(ask("echo", "again")).unchecked)


def run_on_a_device_that_turns_wrong(scene: Scene) -> None:
    """Who hears of it only when asking again must hear the same: their results are suspect."""
    scene.serve()
    client = scene.use(scene.lease())
    client.send_ahead(BLOBS)
    client.run(ask("echo", "r1"))
    scene.runner.wrong = True
    scene.spoil()
    with pytest.raises(SuspectError):
        client.run(ask("crash", "r2"))
    eventually(partial(tells_of_quarantine, scene))


def check_of_a_device_that_turned_wrong(scene: Scene) -> None:
    scene.serve()
    client = scene.use(scene.lease())
    client.send_ahead(BLOBS)
    client.run(ask("echo", "r"))
    scene.runner.wrong = True
    scene.spoil()
    with pytest.raises(SuspectError):
        client.confirm()
    eventually(partial(tells_of_quarantine, scene))


ACTS: Final[tuple[tuple[Method[Any, Any], Callable[[Scene], None]], ...]] = (
    (methods.REGISTER, register),
    (methods.HEARTBEAT, heartbeat),
    (methods.DEREGISTER, deregister),
    (methods.ACQUIRE, acquire),
    (methods.RENEW, renew),
    (methods.RELEASE, release),
    (methods.DRAIN, drain),
    (methods.READMIT, readmit),
    (methods.QUERY_WRITE, upload),
    (methods.WRITE, upload),
    (methods.LOAD_MODULE, load_module),
    (methods.RUN, run),
    (methods.RUN_BATCH, run_batch),
    (methods.RUN, run_on_a_device_that_turns_wrong),
    (methods.CHECK, check),
    (methods.CHECK, check_of_a_device_that_turned_wrong),
)


@contextmanager
def scene_in(
    folder: Path, method: Method[Any, Any], loss: Loss | None, patch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    with Farm(folder) as farm, ExitStack() as owned, patch.context() as within:
        trap = Trap(method, loss) if loss else None
        if trap:
            trap.set_up(within)
        tracker = farm.tracker(limits=SOON)
        way = owned.enter_context(Proxy(tracker.address))
        admin = owned.enter_context(TrackerClient(tracker.address, CREDENTIALS))
        user = owned.enter_context(TrackerClient(way.address, CREDENTIALS, ids=CountingIds()))
        yield Scene(farm, tracker, TurningRunner(), way, admin, user, owned=owned, trap=trap)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, dict[str, Any]]:
    """What comes of each act if nothing is lost, once it is known."""
    return {}


def test_every_method_that_changes_something_is_tried() -> None:
    assert {method.path for method in MUTATING} == {method.path for method, _ in ACTS}
    for method in LOOKING:
        fields = blank(method.request.message).DESCRIPTOR.fields_by_name
        assert "claim" not in fields, "it changes a device's fence at least"


@pytest.mark.parametrize("loss", Loss, ids=lambda loss: str(loss.value))
@pytest.mark.parametrize(
    ("method", "act"), ACTS, ids=[f"{method.name}-{act.__name__}" for method, act in ACTS]
)
def test_asking_again_is_as_asking_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    undisturbed: dict[str, dict[str, Any]],
    method: Method[Any, Any],
    act: Callable[[Scene], None],
    loss: Loss,
) -> None:
    if act.__name__ not in undisturbed:
        with scene_in(tmp_path / "undisturbed", method, None, monkeypatch) as scene:
            act(scene)
            undisturbed[act.__name__] = scene.state()
    with scene_in(tmp_path / "disturbed", method, loss, monkeypatch) as scene:
        act(scene)
        assert scene.trap is not None
        assert scene.trap.sprung.is_set(), "nothing was lost"
        assert scene.state() == undisturbed[act.__name__]
