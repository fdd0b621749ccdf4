"""Looks at a farm from here: its tracker, what we are to it, its clock, and its devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tilefarm.address import check_address
from tilefarm.clock import Clock
from tilefarm.errors import DeviceLostError, TilefarmError
from tilefarm.rpc.caller import Caller
from tilefarm.rpc.health import Health, check_method
from tilefarm.rpc.health import installed as health_is_known
from tilefarm.rpc.served_call import Exchange
from tilefarm.rpc.timing import Watch, watching
from tilefarm.rpc.tracker_calls import Devices, DeviceState
from tilefarm.trust.tls import Credentials
from tilefarm.trust.validity import validity_of
from tilefarm.watch.trace_context import TraceContext, doing

from device_server.tracker.client import TrackerClient
from driver.doctor import DoctorFinding
from driver.farm.leases import in_words

_DAY_SECONDS: Final = 86400.0
_LEAST_DAYS: Final = 14
_MOST_OFFSET_SECONDS: Final = 60.0
_CALL_SECONDS: Final = 5.0
_WORK: Final = TraceContext.of("doctor")


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmAddress:
    """A farm as the command line names it; `options` are those words again, for repairs."""

    tracker: str
    credentials: Credentials
    options: str


def examine_farm(farm: FarmAddress, clock: Clock) -> Iterator[DoctorFinding]:
    """Everything, in the order in which it should be repaired.

    Raises:
        SettingsError: the address is none, or the certificates cannot be read.
    """
    check_address(farm.tracker)
    yield from _certificate(farm.credentials, clock)
    exchanges: list[Exchange] = []
    with doing(_WORK), watching(Watch(exchanges.append, clock)):
        try:
            with TrackerClient(farm.tracker, farm.credentials, clock=clock) as tracker:
                overview = tracker.overview()
        except TilefarmError as error:
            yield _of_error("tracker", error)
            return
    yield DoctorFinding(subject="tracker", good=True, detail=f"{farm.tracker} answers")
    for exchange in exchanges[-1:]:
        yield _caller(exchange)
        yield _clock(exchange)
    yield from _devices(farm, overview)


def _certificate(credentials: Credentials, clock: Clock) -> Iterator[DoctorFinding]:
    if credentials.tls is None:
        return
    folder = credentials.tls.path
    try:
        end = validity_of(credentials.tls.read().certificate).not_after
    except ValueError as error:
        yield DoctorFinding(
            subject="certificate",
            good=False,
            detail=f"{folder}: {error}",
            repair="give a folder that `tilefarm pki issue` made",
        )
        return
    days = (end - clock.wall_seconds()) / _DAY_SECONDS
    yield DoctorFinding(
        subject="certificate",
        good=days >= _LEAST_DAYS,
        detail=f"{folder}: good for {days:.0f} days" if days > 0 else f"{folder}: has expired",
        repair=f"tilefarm pki rotate AUTHORITY {folder}",
    )


def _caller(exchange: Exchange) -> DoctorFinding:
    caller = exchange.served.caller.strip()
    return DoctorFinding(
        subject="token",
        good="submit" in caller,
        detail=f"we are {caller}",
        repair="ask who runs the farm for `tilefarm pki token --role submit`",
    )


def _clock(exchange: Exchange) -> DoctorFinding:
    seconds = exchange.offset_seconds
    ahead = "behind" if seconds > 0 else "ahead of"
    return DoctorFinding(
        subject="clock",
        good=abs(seconds) <= _MOST_OFFSET_SECONDS,
        detail=f"the tracker's is {abs(seconds):.3f} s {ahead} ours",
        repair="timedatectl set-ntp true, on the machine whose time is wrong",
    )


def _devices(farm: FarmAddress, overview: Devices) -> Iterator[DoctorFinding]:
    if not overview.states:
        yield DoctorFinding(
            subject="devices",
            good=False,
            detail="none is registered",
            repair=f"tilefarm device --name NAME {farm.options}",
        )
    for state in overview.states:
        yield _device(farm, state)


def _device(farm: FarmAddress, state: DeviceState) -> DoctorFinding:
    name, words = state.device.name, in_words(state)
    found = DoctorFinding(
        subject=name, good=True, detail=f"{words}; sandbox {state.device.sandbox or 'none'}"
    )
    if state.quarantine or state.draining:
        repair = f"tilefarm devices {farm.options} --readmit {name}"
        return replace(found, good=False, detail=words, repair=repair)
    if state.resting:
        return replace(found, good=False, repair=f"look at the log of {name} and start it again")
    return _reached(found, state.device.address, farm.credentials)


def _reached(found: DoctorFinding, address: str, credentials: Credentials) -> DoctorFinding:
    """The device as it answers itself."""
    if not health_is_known():
        return found
    caller = Caller(address, credentials, peer=f"device {found.subject}", lost=DeviceLostError)
    try:
        health = caller.unary(check_method(), "", timeout_seconds=_CALL_SECONDS)
    except TilefarmError as error:
        return _of_error(found.subject, error)
    finally:
        caller.close()
    if health is Health.SERVING:
        return found
    repair = f"look at the log of {found.subject} and start it again"
    return replace(found, good=False, detail=f"at {address}: does not serve", repair=repair)


def _of_error(subject: str, error: TilefarmError) -> DoctorFinding:
    return DoctorFinding(
        subject=subject,
        good=False,
        detail=error.what,
        repair=error.hint or "read the log of the other side",
    )
