"""A server that has lost one of its duties ends."""

from __future__ import annotations

import asyncio

import pytest
from tilefarm.background_tasks import until


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _fails() -> None:
    raise ZeroDivisionError


def test_a_duty_that_fails_ends_the_others_and_is_raised() -> None:
    async def serve() -> None:
        await until(asyncio.Event(), [_for_ever(), _fails()])

    with pytest.raises(ZeroDivisionError):
        asyncio.run(serve())


def test_the_stop_ends_all() -> None:
    async def serve() -> None:
        stopping = asyncio.Event()
        stopping.set()
        await until(stopping, [_for_ever()])

    asyncio.run(serve())
