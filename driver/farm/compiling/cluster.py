"""Joining a Ray cluster that somebody serves: found, let in, and our code on every node of it.

Compiling needs `compile_worker` and `tilefarm` on a node, which are shipped, and llvmlite and
numpy, which are not. A node where another installation comes first would compile other kernels
than the driver thinks, so each one is asked.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tilefarm.code import code_folder
from tilefarm.errors import (
    AccessError,
    InfraError,
    SettingsError,
    TilefarmError,
    UnreachableError,
)
from tilefarm.interpreter import SHIELDED

from driver.farm.compiling.discovery import PLUGINS, found_here

ANYWHERE: Final = "auto"
"""The address of the cluster that this machine is a node of."""

MOST_WORKERS: Final = 512
"""Each of them takes a file descriptor and a thread of the driver."""

_SHIPPED: Final = ("compile_worker", "tilefarm")
_PROBE_SECONDS: Final = 5.0
_NODE_SECONDS: Final = 90.0
_RECONNECT_SECONDS: Final = 8
"""A head that is gone for so long is taken for lost; Ray's own 60 s would be a silent stall."""


def join(address: str, token: str, *, with_plugins: bool = False) -> int:
    """Make this process a driver on a cluster; the node it runs on must be one of the cluster's.

    Returns how many CPUs the cluster has now for our tasks.

    Args:
        address: `host:port` of the head, or "auto".
        token: the path of a file with the cluster's token; empty: as the environment says.
        with_plugins: tasks bring passes of the user's; only nodes that allow it are for them.

    Raises:
        UnreachableError: there is no cluster, or this machine is no node of it.
        AccessError: it refuses the token, or no node lets passes of plugins run.
        SettingsError: it runs another version of Ray or of ours.
        InfraError: a node does not answer.
    """
    if address == ANYWHERE:
        named = os.environ.get("RAY_ADDRESS", "")
        address = found_here() if named in ("", ANYWHERE) else named
    _require_listener(address)
    if token:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=token)
    os.environ.update(
        RAY_USAGE_STATS_ENABLED="0",
        RAY_gcs_rpc_server_reconnect_timeout_s=str(_RECONNECT_SECONDS),
    )
    import ray
    from ray import exceptions

    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={
                "py_modules": [str(code_folder(package)) for package in _SHIPPED],
                "excludes": ["**/__pycache__"],
                "env_vars": SHIELDED,
            },
        )
    except exceptions.AuthenticationError:
        raise AccessError(
            f"the Ray cluster at {address} refuses the token",
            "--ray-token FILE with what its RAY_AUTH_TOKEN_PATH names",
        ) from None
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise refusal(address, error) from None
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    if with_plugins:
        nodes = allowing_plugins(address, nodes)
    _require_our_code(nodes)
    return int(sum(node["Resources"]["CPU"] for node in nodes))


def _require_listener(address: str) -> None:
    """Nothing if somebody listens there: Ray itself would wait for ever."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS).close()
    except OSError as error:
        raise UnreachableError(
            f"no Ray cluster answers at {address}: {error.strerror or error}",
            "--ray with the address that `ray start --head` printed",
        ) from None


def refusal(address: str, error: Exception) -> TilefarmError:
    """What it means that Ray did not join a cluster."""
    why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "ersion mismatch" in why:
        return SettingsError(
            f"the Ray cluster at {address} is of another version: {' '.join(str(error).split())}",
            "install one version of Ray and Python on both sides",
        )
    return UnreachableError(
        f"cannot join the Ray cluster at {address}: {why}",
        "--ray-token with the cluster's token; run it on one of its nodes (`ray start --address`),"
        " or `tilefarm submit` from elsewhere",
    )


def allowing_plugins(address: str, nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nodes whose owners let passes of users' plugins run.

    Raises:
        AccessError: there are none.
    """
    found = [node for node in nodes if node["Resources"].get(PLUGINS)]
    if not found:
        raise AccessError(
            f"no node of the Ray cluster at {address} lets passes of plugins run",
            f"""a node's owner allows it by `ray start --resources='{{"{PLUGINS}": 1}}'`;"""
            " or --no-ray, which compiles here",
        )
    return found


def _require_our_code(nodes: Sequence[Mapping[str, Any]]) -> None:
    """Nothing if every node that compiles does so with this code and these libraries."""
    import ray
    from ray import exceptions
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from compile_worker import tasks

    here = tasks.installed()
    asked = {
        node["NodeManagerAddress"]: tasks.installed_there.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in nodes
    }
    reasons = list[str]()
    for address, answer in asked.items():
        try:
            there = ray.get(answer, timeout=_NODE_SECONDS)
        except exceptions.GetTimeoutError:
            raise InfraError(
                f"node {address} of the Ray cluster does not answer within {_NODE_SECONDS:g} s",
                "`ray status` on it; or `--no-ray`",
            ) from None
        except exceptions.RayError as error:
            lines = str(error).strip().splitlines()
            reasons.append(f"node {address} cannot compile: {lines[-1] if lines else error!r}")
            continue
        reasons += differences(address, here, there)
    if reasons:
        raise SettingsError("; ".join(reasons), "install the same tilefarm on all nodes")


def differences(node: str, here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """What of a node's installation is not ours, in one reason; none if nothing."""
    differing = [
        f"{name} {there.get(name)}, not {value}"
        for name, value in here.items()
        if there.get(name) != value
    ]
    return [f"node {node} has {'; '.join(differing)}"] if differing else []
