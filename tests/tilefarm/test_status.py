"""Errors keep their class and words on the way over the wire."""

from __future__ import annotations

import inspect
import pickle

import grpc
import pytest
from tilefarm import errors
from tilefarm.errors import DeviceLostError, InfraError, ScheduleError, TilefarmError, UserError
from tilefarm.rpc import status

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, TilefarmError)
]


def made(kind: type[TilefarmError]) -> TilefarmError:
    if kind is ScheduleError:
        return ScheduleError("split", "i", "6 does not divide 64", "4 or 8")
    return kind("what went wrong: größer", "try this\nor that")


class Failure:
    """A failed call as gRPC presents it."""

    def __init__(
        self,
        code: grpc.StatusCode,
        details: str,
        metadata: tuple[tuple[str, str | bytes], ...] = (),
    ) -> None:
        self._code, self._details, self._metadata = code, details, metadata

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return self._metadata


def over_the_wire(error: TilefarmError) -> TilefarmError:
    failure = Failure(status.code_of(error), status.details_of(error), status.metadata_of(error))
    return status.error_from(failure, peer="device x", lost=DeviceLostError)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_class_has_a_row(kind: type[TilefarmError]) -> None:
    assert kind in status.CODES


@pytest.mark.parametrize("kind", KINDS)
def test_the_drawing_of_the_tree_names_every_class(kind: type[TilefarmError]) -> None:
    assert kind.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not ScheduleError])
def test_a_client_gets_the_error_that_the_server_raised(kind: type[TilefarmError]) -> None:
    error = over_the_wire(made(kind))
    assert type(error) is kind
    assert str(error) == str(made(kind))


def test_a_busy_server_says_when_to_come_again() -> None:
    error = over_the_wire(errors.BusyError("full", "wait", 1.25))
    assert isinstance(error, errors.BusyError)
    assert error.retry_seconds == 1.25
    for said, seconds in (("-5", 1.0), ("soon", 1.0), ("9" * 30, 60.0), ("0", 0.0)):
        failure = Failure(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "full",
            ((status.NAME_KEY, "BusyError"), (status.RETRY_KEY, said)),
        )
        told = status.error_from(failure, peer="x", lost=DeviceLostError)
        assert isinstance(told, errors.BusyError)
        assert told.retry_seconds == seconds


@pytest.mark.parametrize("kind", [DeviceLostError, errors.SuspectError])
@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_a_device_that_rests_says_when_it_may_be_back(
    kind: type[DeviceLostError], seconds: float
) -> None:
    error = over_the_wire(kind("it drifts", "wait", seconds))
    assert isinstance(error, kind)
    assert (str(error), error.retry_seconds) == (str(kind("it drifts", "wait")), seconds)


def test_a_schedule_error_arrives_as_a_user_error() -> None:
    error = over_the_wire(made(ScheduleError))
    assert type(error) is UserError
    assert error.what == "split(i): 6 does not divide 64"


@pytest.mark.parametrize("kind", KINDS)
def test_errors_pickle_and_say_what_to_try(kind: type[TilefarmError]) -> None:
    error = pickle.loads(pickle.dumps(made(kind)))
    assert type(error) is kind
    assert str(error) == str(made(kind))
    assert "\n  try: " in str(error)


def test_a_class_without_a_row_has_its_ancestors() -> None:
    class Odd(errors.LeaseError):
        pass

    assert status.code_of(Odd("x")) is grpc.StatusCode.ABORTED
    assert type(over_the_wire(Odd("x"))) is errors.LeaseError


def test_a_long_story_is_cut_to_fit_a_header() -> None:
    assert len(over_the_wire(InfraError("x" * 100_000)).what) == 2000


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, DeviceLostError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, DeviceLostError),
        (grpc.StatusCode.CANCELLED, DeviceLostError),
        (grpc.StatusCode.UNAUTHENTICATED, errors.AccessError),
        (grpc.StatusCode.PERMISSION_DENIED, errors.ForbiddenError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.CapacityError),
        (grpc.StatusCode.UNIMPLEMENTED, InfraError),
        (grpc.StatusCode.UNKNOWN, InfraError),
    ],
)
def test_a_stranger_is_understood_by_its_code(
    code: grpc.StatusCode, kind: type[TilefarmError]
) -> None:
    error = status.error_from(Failure(code, "why"), peer="device x", lost=DeviceLostError)
    assert type(error) is kind
    assert "device x" in error.what
    assert "why" in error.what or "time" in error.what


def test_a_name_that_we_do_not_know_changes_nothing() -> None:
    failure = Failure(grpc.StatusCode.ABORTED, "why", ((status.NAME_KEY, "Surprise"),))
    error = status.error_from(failure, peer="device x", lost=DeviceLostError)
    assert type(error) is errors.LeaseError
