"""A Ray host that has joined a cluster of three CPUs, or of very many, which is not there."""

from __future__ import annotations

import sys

from driver.farm.compiling import ray_child

CPUS = {"10.0.0.3:6379": 3, "10.0.0.9:6379": 100_000}

if __name__ == "__main__":
    vars(ray_child)["join"] = lambda address, token, with_plugins: CPUS[address]
    ray_child.main(*sys.argv[1:])
