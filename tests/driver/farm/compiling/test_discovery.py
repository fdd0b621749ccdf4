"""Which of the Rays on a machine `--ray auto` means."""

from __future__ import annotations

import pytest
from tilefarm.errors import UnreachableError

from driver.farm.compiling.discovery import PRIVATE, found_here

WORKER = ["/opt/python", "default_worker.py", "--gcs-address=10.0.0.1:1"]


def daemon(address: str, resources: str = "CPU,2") -> list[str]:
    return [
        "/opt/ray/raylet/raylet",
        "--raylet_socket_name=/tmp/ray/socket",
        f"--static_resource_list=node:10.0.0.1,1.0,{resources}",
        f"--gcs-address={address}",
    ]


def test_it_is_the_one_that_nobody_has_for_himself() -> None:
    private = daemon("127.0.0.2:6000", f"CPU,2,{PRIVATE},1.0")
    assert found_here([private, daemon("10.0.0.1:6379"), WORKER, [], [""]]) == "10.0.0.1:6379"
    assert found_here([daemon("10.0.0.1:6379")] * 2) == "10.0.0.1:6379", "two of its nodes"
    with pytest.raises(UnreachableError, match="no node of a Ray cluster\n  try: --ray"):
        found_here([private, WORKER])


def test_of_several_the_user_says_which() -> None:
    several = r"2 Ray clusters: 10.0.0.1:1, 10.0.0.2:2\n  try: --ray 10.0.0.1:1"
    with pytest.raises(UnreachableError, match=several):
        found_here([daemon("10.0.0.2:2"), daemon("10.0.0.1:1")])
