"""What goes on under a lease ends with it, at once and once."""

from __future__ import annotations

import asyncio

import pytest
from tilefarm.errors import LeaseError

from device_server.tenancy import Tenancy


def test_what_goes_on_is_stopped_once() -> None:
    tenancy, stopped = Tenancy(lease="a", fence=1), list[str]()
    with tenancy.stopping(lambda: stopped.append("left")):
        pass
    with tenancy.stopping(lambda: stopped.append("running")):
        tenancy.end("it was given back")
        tenancy.end("again")
        assert stopped == ["running"]
    with tenancy.stopping(lambda: stopped.append("late")):
        assert stopped == ["running", "late"]
    assert tenancy.over == "it was given back"
    with pytest.raises(LeaseError, match="lease 'a' is over: it was given back"):
        tenancy.require()


def test_work_is_cancelled_when_the_lease_ends() -> None:
    async def story() -> None:
        tenancy, closed = Tenancy(), list[str]()

        async def upload() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                closed.append("upload")

        asyncio.get_running_loop().call_later(0.01, tenancy.end, "a newer lease has begun")
        with pytest.raises(LeaseError, match="a newer lease has begun"):
            await tenancy.during(upload())
        assert closed == ["upload"]
        with pytest.raises(LeaseError):
            await tenancy.during(upload())

    asyncio.run(story())


def test_work_that_has_ended_is_given() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    assert asyncio.run(Tenancy().during(work())) == 7


def test_a_caller_who_goes_away_is_no_end_of_the_lease() -> None:
    async def story() -> None:
        tenancy, begun = Tenancy(), asyncio.Event()

        async def work() -> None:
            begun.set()
            await asyncio.Event().wait()

        waiting = asyncio.create_task(tenancy.during(work()))
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        tenancy.end("later")

    asyncio.run(story())
