"""The servers as processes of their own: start, end, and what they import."""

from __future__ import annotations

import signal
import textwrap
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, eventually
from tilefarm.errors import InfraError
from tilefarm.target import TARGETS

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient

from .processes import DEVICE, TRACKER, ended, process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_tracker_ends_cleanly_on_a_signal(number: signal.Signals) -> None:
    with process(TRACKER) as (tracker, address), TrackerClient(address, CREDENTIALS) as client:
        assert client.devices() == []
        tracker.send_signal(number)
        code, errors = ended(tracker)
    assert code == 0
    assert "event=ready component=tracker" in errors
    assert "Traceback" not in errors


def test_a_tracker_ends_with_its_parent() -> None:
    middle = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
        print(child.stdout.readline().decode().strip(), flush=True)
        child.wait()
    """
    with (
        process(middle, textwrap.dedent(TRACKER)) as (parent, address),
        TrackerClient(address, CREDENTIALS) as client,
    ):
        eventually(lambda: answers(client))
        parent.kill()
        eventually(lambda: not answers(client))


def answers(client: TrackerClient) -> bool:
    try:
        client.devices()
    except InfraError:
        return False
    return True


def test_a_device_registers_serves_and_takes_its_leave(tmp_path: Path) -> None:
    with (
        process(TRACKER) as (_, tracker),
        process(DEVICE, tracker, str(tmp_path)) as (device, address),
        TrackerClient(tracker, CREDENTIALS) as client,
    ):
        target = TARGETS["sim"].digest
        lease = client.acquire(target, wait_seconds=60.0, owner="test")
        assert lease is not None
        assert lease.device.address == address
        with DeviceClient(lease, CREDENTIALS) as leased:
            assert leased.capabilities().target == target
        device.send_signal(signal.SIGTERM)
        code, errors = ended(device)
        assert code == 0
        assert "Traceback" not in errors
        assert client.devices() == []


@pytest.mark.parametrize(
    "module", ["tracker.process", "device.client", "device.servicer", "device.server"]
)
def test_a_small_board_can_import_it(module: str) -> None:
    code = f"""
        import sys
        import device_server.{module}
        heavy = {{"numpy", "ray", "llvmlite", "onnx", "xgboost", "rich", "cryptography"}}
        print(sorted(heavy & set(sys.modules)))
    """
    with process(code) as (_, said):
        assert said == "[]"
