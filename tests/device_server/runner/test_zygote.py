"""The process that children are copies of: whose they are, what they have, what if it dies."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.errors import InfraError
from tilefarm.measurement import Measurement, RunJob
from tilefarm.process_state import process_state
from tilefarm.target import TARGETS

from device_server.runner.arena import arena
from device_server.runner.child import RunnerChild
from device_server.runner.children import Children
from device_server.runner.connection import Connection
from device_server.runner.frames import Account, FailedReply, load_request
from device_server.runner.runner import Runner
from device_server.runner.zygote import RunnerLimits, Zygote
from device_server.vta.library.native import find_executable, find_library

SECONDS = 60.0

CHILDLESS = """
import os, struct, sys
ready = struct.pack("<IBIIB", 10, 1, 0, 0, 0)
os.write(int(sys.argv[1]), ready + ready)
sys.exit("no more children")
"""


@pytest.fixture
def children() -> Iterator[Children]:
    with Children(
        TARGETS["sim"],
        library=find_library(),
        executable=find_executable(),
        limits=RunnerLimits(),
        environment={},
    ) as made:
        yield made


def zygote_of(children: Children) -> Zygote:
    zygote = children.zygote
    assert zygote is not None
    return zygote


def pid_of(child: RunnerChild) -> int:
    return child.process.pid


def test_children_are_this_process_s_own_and_each_is_another(children: Children) -> None:
    with children.child() as one, children.child() as other:
        pids = {pid_of(one), pid_of(other), zygote_of(children).process.pid}
        assert len(pids) == 3
        assert {process_state(pid).parent for pid in pids} == {os.getpid()}
    assert not one.alive
    assert not other.alive


def test_an_accelerator_is_this_process_s_own_and_has_what_its_child_has_not(
    children: Children,
) -> None:
    with children.child() as child, Path("/dev/null").open() as nothing:
        child.send(load_request(nothing.fileno()))
        child.loaded(SECONDS)
        accelerator = child.accelerator
        assert accelerator is not None
        accelerator.account(SECONDS)
        pid = accelerator.process.pid
        assert process_state(pid).parent == os.getpid()
        try:
            ours, theirs = (sockets_of(each) for each in (pid_of(child), pid))
        except PermissionError:
            pytest.skip("only root may look at what its children have open")
        assert len(theirs) == 2
        assert not ours & theirs
    assert accelerator.process.poll() is not None


def test_an_accelerator_tells_its_calls_and_nothing_else(children: Children) -> None:
    with children.child() as child, Path("/dev/null").open() as nothing:
        assert child.accelerator is not None
        reply = child.accelerator.connection.ask(load_request(nothing.fileno()), SECONDS)
        assert isinstance(reply, FailedReply)
        assert "nothing else" in reply.why


def test_an_accelerator_hears_nothing_more_of_a_child_once_it_serves_the_next(
    children: Children,
) -> None:
    """What a killed child has asked and was not heard of is nobody's."""
    begin_call = struct.pack("<IIQ", 3, 0, 0)
    children.ready()
    with zygote_of(children).accelerator(SECONDS) as accelerator:
        for _ in range(2):
            ours, its = socket.socketpair()
            with ours, its, arena(1 << 20) as memory:
                accelerator.serve(its.fileno(), memory)
                its.close()
                ours.sendall(begin_call)
                account = accelerator.account(SECONDS)
                assert isinstance(account, Account)
                assert [entry.calls for entry in account.calls] == [1]
                ours.sendall(1000 * begin_call)
                last, its = socket.socketpair()
                with last, its:
                    accelerator.serve(its.fileno(), memory)
                    its.close()
                    assert accelerator.account(SECONDS) == Account(None, (), ())
                ours.settimeout(SECONDS)
                with contextlib.suppress(ConnectionResetError):
                    assert ours.recv(1) == b""


def sockets_of(pid: int) -> set[str]:
    targets = (str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir())
    return {target for target in targets if target.startswith("socket")}


def test_a_child_leads_a_session_and_has_no_descriptor_of_its_zygote(children: Children) -> None:
    with children.child() as child, Path("/dev/null").open() as nothing:
        child.send(load_request(nothing.fileno()))
        assert isinstance(child.loaded(SECONDS), FailedReply)
        pid = pid_of(child)
        assert os.getsid(pid) == pid
        files = Path(f"/proc/{pid}/fd")
        try:
            open_ones = {int(file.name): file.readlink() for file in files.iterdir()}
        except PermissionError:
            pytest.skip("only root may look at what its children have open")
        sockets = [fd for fd, to in open_ones.items() if str(to).startswith("socket")]
        buffers = [fd for fd, to in open_ones.items() if "vta-runner-arena" in str(to)]
        assert open_ones.keys() == {0, 1, 2, *sockets, *buffers}
        assert (len(sockets), len(buffers)) == (2, 1)


def test_children_outlive_their_zygote(
    children: Children, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    with children.child() as child, blobs.path(compiled["good"]).open() as artifact:
        zygote_of(children).close()
        child.send(load_request(artifact.fileno()))
        assert not isinstance(child.loaded(SECONDS), FailedReply)
        assert child.alive


def test_a_zygote_that_was_killed_is_replaced(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=())
    other = RunJob(artifact=compiled["shared"], entry="nothing", buffers=())
    for _ in range(2):
        assert isinstance(runner.run(job, blobs.path), Measurement)
        runner.run(other, blobs.path)
        os.kill(zygote_of(runner.children).process.pid, signal.SIGKILL)


def test_a_zygote_that_makes_no_child_is_an_infra_error(tmp_path: Path) -> None:
    """It says who it is, takes its configuration, and ends."""
    script = tmp_path / "vta-runner"
    script.write_text(f"#!{sys.executable} -I\n{CHILDLESS}")
    script.chmod(0o755)
    children = Children(
        TARGETS["sim"],
        library=find_library(),
        executable=script,
        limits=RunnerLimits(),
        environment={},
    )
    with children, pytest.raises(InfraError, match="makes no child: no more children"):
        children.child()


def test_a_zygote_loads_no_artifact(blobs: Blobs, compiled: dict[str, Digest]) -> None:
    limits = RunnerLimits()
    with Zygote(find_executable(), find_library(), limits, environment={}) as zygote:
        zygote.hello(SECONDS)
        with blobs.path(compiled["good"]).open() as artifact:
            reply = zygote.connection.ask(load_request(artifact.fileno()), SECONDS)
    assert isinstance(reply, FailedReply)
    assert "loads and runs nothing" in reply.why


def test_a_connection_may_be_closed_twice() -> None:
    connection = Connection()
    connection.close()
    connection.close()
