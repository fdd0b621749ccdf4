"""Trained networks of the zoo, tried as a user would: all samples, and nothing said on the way."""

from __future__ import annotations

from kit.shared import zoo_folder

from driver.benchmarks.zoo.attempt import attempt
from driver.benchmarks.zoo.recipes import RECIPES
from driver.benchmarks.zoo.records import Attempt, Tried
from driver.network.quantize.options import AS_USUAL


def passed(name: str, target: str) -> Tried:
    """What came of a network that passes its gate on a target.

    The test that asks is skipped where there is no zoo.
    """
    folder = zoo_folder()
    task = Attempt(
        name=name,
        model=str(folder / "models" / f"{name}.onnx"),
        recipe=RECIPES[name],
        data=folder / "data",
        samples=None,
        how=AS_USUAL,
        target=target,
        with_peer=False,
        says=False,
    )
    row = attempt(task)
    assert isinstance(row, Tried), row
    assert row.findings == ()
    return row
