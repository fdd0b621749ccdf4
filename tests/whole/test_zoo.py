"""The trained networks of the zoo, from file to device, against their gates."""

from __future__ import annotations

import pytest
from kit.networks.zoo_attempts import passed

from driver.benchmarks.zoo.recipes import RECIPES


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", RECIPES)
def test_every_network_passes(name: str) -> None:
    passed(name, "sim")
