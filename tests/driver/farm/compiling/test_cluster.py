"""Joining a cluster: what is not there, or does not fit, is told before anything is compiled."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from kit.search.stand_ins import SIM, toy_workload
from tilefarm.artifact import CompileJob
from tilefarm.clock import SystemClock
from tilefarm.errors import AccessError, ClusterLostError, SettingsError, UnreachableError
from tilefarm.trace import Trace
from tilefarm.trust.credentials import create_token

from driver.farm.compiling import cluster
from driver.farm.compiling.ray_worker import RayHost, RayWorker
from driver.farm.run_resources import Folders, RunResources
from driver.farm.settings import FarmSettings

JOB = CompileJob(workload=toy_workload(), trace=Trace(()), target=SIM)


def test_an_address_where_nobody_listens_is_told_at_once(tmp_path: Path) -> None:
    host = RayHost(tmp_path, 1, tmp_path / "log", cluster="127.0.0.1:1")
    try:
        with pytest.raises(UnreachableError, match=r"no Ray cluster answers at 127\.0\.0\.1:1: "):
            host.wait(100)
        with pytest.raises(UnreachableError, match="--ray with the address"):
            RayWorker(host, 0).compile([JOB], 10.0)
    finally:
        host.close()


def test_a_cluster_that_ends_is_not_a_crash_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        # The child neither joins nor ends: it waits for a batch that never comes.
        patched.setattr("driver.farm.compiling.ray_worker.HOST", "kit.children.sleeper")
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        host = RayHost(tmp_path, 1, tmp_path / "log", cluster="10.0.0.1:6379")
    assert host.waits_for == "joining the Ray cluster at 10.0.0.1:6379"
    threading.Timer(0.2, host.kill).start()
    with pytest.raises(ClusterLostError, match=r"10\.0\.0\.1:6379 is gone") as lost:
        RayWorker(host, 0).compile([JOB], 10.0)
    assert lost.value.exit_code == 75
    host.close()


@pytest.mark.parametrize(
    ("why", "kind", "words"),
    [
        ("Version mismatch: The cluster\nhas Ray: 2.9", SettingsError, "has Ray: 2.9"),
        ("No node info found", UnreachableError, "cannot join .*: No node info"),
        ("", UnreachableError, "cannot join .*: RuntimeError"),
    ],
)
def test_what_ray_says_has_a_meaning(why: str, kind: type[Exception], words: str) -> None:
    refusal = cluster.refusal("10.0.0.1:6379", RuntimeError(why))
    assert type(refusal) is kind
    with pytest.raises(kind, match=words):
        raise refusal


def test_a_node_with_other_code_is_named() -> None:
    here = {"code": "abc", "numpy": "2.1"}
    assert cluster.differences("10.0.0.2", here, here) == []
    (reason,) = cluster.differences("10.0.0.2", here, {"code": "abd"})
    assert reason == "node 10.0.0.2 has code abd, not abc; numpy None, not 2.1"


def test_passes_of_plugins_run_where_the_owner_of_a_node_allows_it() -> None:
    asked = {"NodeID": "a", "Resources": {"CPU": 4.0}}
    allows = {"NodeID": "b", "Resources": {"CPU": 4.0, "tilefarm_plugins": 1.0}}
    assert cluster.allowing_plugins("10.0.0.1:6379", [asked, allows]) == [allows]
    with pytest.raises(AccessError, match=r"no node of .* lets passes .*\n.*tilefarm_plugins"):
        cluster.allowing_plugins("10.0.0.1:6379", [asked])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ray": False, "ray_address": "auto"}, "exclude each other"),
        ({"ray_token": Path("t")}, "--ray-token is for a cluster\n  try: add --ray"),
        ({"ray_address": "head"}, "'head' is not host:port"),
    ],
)
def test_options_that_contradict_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        FarmSettings(**settings)


@pytest.mark.parametrize(
    ("address", "asked", "workers"),
    [
        ("10.0.0.3:6379", 0, 3),
        ("10.0.0.3:6379", 5, 5),
        ("10.0.0.9:6379", 0, cluster.MOST_WORKERS),
    ],
)
def test_a_run_has_a_worker_for_each_cpu_of_a_cluster_or_as_many_as_its_user_says(
    address: str, asked: int, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (tests, tests.parent))))
    monkeypatch.setattr("driver.farm.compiling.ray_worker.HOST", "kit.children.joined_ray")
    token = tmp_path / "token"
    create_token(token)
    settings = FarmSettings(
        workers=asked, ray_address=address, tracker="127.0.0.1:1", token_file=token
    )
    folders = Folders(scratch=tmp_path, log=tmp_path)
    with RunResources(settings, SIM, folders, owner="test", clock=SystemClock()) as house:
        assert house.workers == workers
        assert house.compiled_on == f"Ray, {workers} workers"
