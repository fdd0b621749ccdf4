"""Fixtures and options that every test may use."""

import gc
import os
from typing import Final

import pytest
from kit.examples import register_profiles
from kit.golden import golden, pytest_addoption
from kit.quarantine import set_apart

__all__ = [
    "golden",
    "pytest_addoption",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_sessionfinish",
]

pytest_plugins = ["pytester"]

# As of `tilefarm`, see `tilefarm.quiet`: threads of numpy that spin would slow the tests beside.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

register_profiles()

gc.disable()  # until all tests are there, as nothing of what is made for them ever goes


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # a fifteenth of the tests' time went into looking for cycles
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.collect()
    gc.freeze()  # pytest looks for cycles five times more as it ends, through all that was made


LONG: Final = frozenset({"whole", "faults", "farm", "tune", "tuner"})
"""Folders of files in which few tests take long: begun first, or one process does them alone at
the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    set_apart(items)
    items.sort(key=lambda item: LONG.isdisjoint(item.path.parts))
