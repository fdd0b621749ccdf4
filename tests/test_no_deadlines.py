"""Tests wait for events, as long as a busy machine may take, and not for times that pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hypothesis import settings

TESTS: Final = Path(__file__).resolve().parent

PAUSES: Final = {
    "driver/campaign/test_loop.py::acquire": "a device that comes late",
    "driver/campaign/test_loop.py::test_who_starves_because_few_may_be_out_is_told_so_once": (
        "a search that is slow to take results"
    ),
    "faults/nemesis.py::_lie_and_kill": "how long a lie is believed, at random",
    "faults/test_lost_calls.py::_slept": "the pause of a client that tries again",
    "faults/test_lost_calls.py::acquire": "nobody hears that the server misses a caller",
    "faults/test_row_07_network_cut.py::test_a_connection_that_breaks_under_a_run": (
        "how long a network is cut"
    ),
    "faults/test_row_07_network_cut.py::test_a_result_that_was_made_during_the_cut": (
        "how long a network is cut"
    ),
    "faults/test_row_09_compile_worker_killed.py::test_a_kill_from_outside_fails_nobody": (
        "nobody reads the pipe in which the batch is"
    ),
    "faults/test_row_22_ctrl_c.py::test_twice": "who presses it again",
    "kit/children/lying_device.py::told": "a slow device",
    "kit/children/orphans.py::main": "it goes on until it is ended",
    "kit/children/sleeper.py::": "it goes on until it is ended",
    "kit/farm/in_process.py::run": "a slow kernel",
    "kit/farm/proxy.py::_accept": "a slow network",
    "whole/test_interrupted.py::test_ctrl_c_twice_ends_at_once": "who presses it again",
}
"""Functions that let time pass outside a loop, each with what that time is."""


def pauses(tree: ast.AST, name: str = "") -> Iterator[str]:
    """The functions that sleep and do not look at something before they do so again."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            continue
        if isinstance(node, ast.Call) and is_sleep(node):
            yield name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from pauses(node, node.name)
        else:
            yield from pauses(node, name)


def is_sleep(call: ast.Call) -> bool:
    """Giving others a turn is none."""
    called = ast.unparse(call.func)
    return called in {"time.sleep", "asyncio.sleep", "sleep"} and ast.unparse(call.args[0]) != "0"


def test_examples_have_no_deadline() -> None:
    assert settings().deadline is None


def test_nothing_waits_for_a_time() -> None:
    found = {
        f"{path.relative_to(TESTS).as_posix()}::{name}"
        for path in TESTS.rglob("*.py")
        if "sleep" in (text := path.read_text())
        for name in pauses(ast.parse(text))
    }
    assert found == PAUSES.keys(), "wait for an event, or say what the time is"


def test_a_pause_is_found() -> None:
    source = "def f():\n  while x: sleep(1)\n  await asyncio.sleep(0)\ndef g():\n  time.sleep(1)"
    assert [*pauses(ast.parse(source))] == ["g"]
