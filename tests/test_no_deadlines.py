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


PATIENCE: Final = 30.0
"""What comes may take so many seconds on a machine that does other things, and stands still now and
then. Who waits longer loses nothing, as nothing waits any longer than until it is there."""

BRIEF: Final = 2.0
"""Who waits for less waits for what does not come, or looks again."""

HASTY: Final = {
    "device_server/runner/test_loading.py": "what is left of a child's processor time",
    "device_server/runner/test_stand_in.py": "less than the time that is to come on top of it",
    "driver/farm/compiling/test_executor.py": "told to workers that have no clock",
    "tilefarm/test_records.py": "a record's value",
    "device_server/tracker/test_leases.py": "a clock that the test moves",
    "driver/farm/test_device_thread.py": "a clock that the test moves",
    "device_server/tracker/test_waiting.py": "what is asked for, and not waited for",
    "faults/test_row_21_crowd.py": "who asks in vain until the time is over",
}
"""Files in which somebody waits for less than that, each with what the time is."""


WAITS: Final = frozenset({"acquire", "ended_with", "exception", "join", "result", "wait"})
TIMES: Final = frozenset({"seconds", "timeout", "timeout_seconds", "wait_seconds"})


def hasty(tree: ast.AST) -> Iterator[str]:
    """Waits for what is expected that give up too soon."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, args=ast.arguments() as given):
                least = zip(reversed(given.args), reversed(given.defaults), strict=False)
                named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
                for parameter, value in [*least, *named]:
                    if parameter.arg in TIMES and is_hasty(value):
                        yield f"{name}({parameter.arg})"
            case ast.Call(func=called, args=values, keywords=named):
                times = [k.value for k in named if k.arg in TIMES - {"seconds"}]
                if isinstance(called, ast.Attribute) and called.attr in WAITS:
                    times += values[:1]
                if any(map(is_hasty, times)):
                    yield ast.unparse(node)


def is_hasty(value: ast.AST | None) -> bool:
    match value:
        case ast.Constant(value=int() | float() as seconds):
            return BRIEF <= seconds < PATIENCE
    return False


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


def test_what_comes_is_waited_for_as_long_as_it_may_take() -> None:
    found = {
        path.relative_to(TESTS).as_posix(): calls
        for path in TESTS.rglob("*.py")
        if (calls := [*hasty(ast.parse(path.read_text()))])
    }
    assert found.keys() == HASTY.keys(), f"{found}\n  try: 60 s, or say what the time is"


def test_a_hasty_wait_is_found() -> None:
    source = "a.acquire(t, wait_seconds=5)\nb.join(10)\nc.wait(0.5)\nd.result(60)\ne.f(timeout=3)"
    source += (
        "\ndef f(timeout=60, seconds=5): ...\ndef g(*, timeout=9): ...\ndef h(timeout=60): ..."
    )
    assert sorted(hasty(ast.parse(source))) == [
        "a.acquire(t, wait_seconds=5)",
        "b.join(10)",
        "e.f(timeout=3)",
        "f(seconds)",
        "g(timeout)",
    ]
