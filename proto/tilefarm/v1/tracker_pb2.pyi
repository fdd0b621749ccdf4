from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeviceClock(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEVICE_CLOCK_UNSPECIFIED: _ClassVar[DeviceClock]
    DEVICE_CLOCK_CYCLES: _ClassVar[DeviceClock]
    DEVICE_CLOCK_SECONDS: _ClassVar[DeviceClock]
DEVICE_CLOCK_UNSPECIFIED: DeviceClock
DEVICE_CLOCK_CYCLES: DeviceClock
DEVICE_CLOCK_SECONDS: DeviceClock

class Label(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class DeviceInfo(_message.Message):
    __slots__ = ("name", "address", "target", "runtime", "sandbox", "epoch", "labels", "self_test", "clock", "known_seconds", "known_spread", "power")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SELF_TEST_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    KNOWN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    KNOWN_SPREAD_FIELD_NUMBER: _ClassVar[int]
    POWER_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    target: bytes
    runtime: str
    sandbox: str
    epoch: str
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    self_test: str
    clock: DeviceClock
    known_seconds: float
    known_spread: float
    power: str
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., target: _Optional[bytes] = ..., runtime: _Optional[str] = ..., sandbox: _Optional[str] = ..., epoch: _Optional[str] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., self_test: _Optional[str] = ..., clock: _Optional[_Union[DeviceClock, str]] = ..., known_seconds: _Optional[float] = ..., known_spread: _Optional[float] = ..., power: _Optional[str] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("lease_id", "device", "fence", "ttl_seconds", "ticket")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    device: DeviceInfo
    fence: int
    ttl_seconds: float
    ticket: bytes
    def __init__(self, lease_id: _Optional[str] = ..., device: _Optional[_Union[DeviceInfo, _Mapping]] = ..., fence: _Optional[int] = ..., ttl_seconds: _Optional[float] = ..., ticket: _Optional[bytes] = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("device", "fence", "secret")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    device: DeviceInfo
    fence: int
    secret: bytes
    def __init__(self, device: _Optional[_Union[DeviceInfo, _Mapping]] = ..., fence: _Optional[int] = ..., secret: _Optional[bytes] = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("heartbeat_seconds",)
    HEARTBEAT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    heartbeat_seconds: float
    def __init__(self, heartbeat_seconds: _Optional[float] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("runs", "busy_seconds", "up_seconds")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    BUSY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    runs: int
    busy_seconds: float
    up_seconds: float
    def __init__(self, runs: _Optional[int] = ..., busy_seconds: _Optional[float] = ..., up_seconds: _Optional[float] = ...) -> None: ...

class RefusedRun(_message.Message):
    __slots__ = ("artifact", "entry", "crashes", "status", "why", "refused_seconds")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    CRASHES_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    REFUSED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    artifact: bytes
    entry: str
    crashes: int
    status: str
    why: str
    refused_seconds: float
    def __init__(self, artifact: _Optional[bytes] = ..., entry: _Optional[str] = ..., crashes: _Optional[int] = ..., status: _Optional[str] = ..., why: _Optional[str] = ..., refused_seconds: _Optional[float] = ...) -> None: ...

class RefusedRuns(_message.Message):
    __slots__ = ("edition", "runs")
    EDITION_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    edition: int
    runs: _containers.RepeatedCompositeFieldContainer[RefusedRun]
    def __init__(self, edition: _Optional[int] = ..., runs: _Optional[_Iterable[_Union[RefusedRun, _Mapping]]] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("name", "epoch", "resting", "quarantine", "usage", "refused")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RESTING_FIELD_NUMBER: _ClassVar[int]
    QUARANTINE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    name: str
    epoch: str
    resting: str
    quarantine: str
    usage: Usage
    refused: RefusedRuns
    def __init__(self, name: _Optional[str] = ..., epoch: _Optional[str] = ..., resting: _Optional[str] = ..., quarantine: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., refused: _Optional[_Union[RefusedRuns, _Mapping]] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("known", "quarantined", "readmissions", "refused_edition", "ended_fence")
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_FIELD_NUMBER: _ClassVar[int]
    READMISSIONS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_EDITION_FIELD_NUMBER: _ClassVar[int]
    ENDED_FENCE_FIELD_NUMBER: _ClassVar[int]
    known: bool
    quarantined: bool
    readmissions: int
    refused_edition: int
    ended_fence: int
    def __init__(self, known: _Optional[bool] = ..., quarantined: _Optional[bool] = ..., readmissions: _Optional[int] = ..., refused_edition: _Optional[int] = ..., ended_fence: _Optional[int] = ...) -> None: ...

class DeregisterRequest(_message.Message):
    __slots__ = ("name", "epoch")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    name: str
    epoch: str
    def __init__(self, name: _Optional[str] = ..., epoch: _Optional[str] = ...) -> None: ...

class DeregisterResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AcquireRequest(_message.Message):
    __slots__ = ("request_id", "target", "labels", "wait_seconds", "owner", "priority", "job")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    target: bytes
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    wait_seconds: float
    owner: str
    priority: int
    job: str
    def __init__(self, request_id: _Optional[str] = ..., target: _Optional[bytes] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., wait_seconds: _Optional[float] = ..., owner: _Optional[str] = ..., priority: _Optional[int] = ..., job: _Optional[str] = ...) -> None: ...

class AcquireResponse(_message.Message):
    __slots__ = ("lease",)
    LEASE_FIELD_NUMBER: _ClassVar[int]
    lease: Lease
    def __init__(self, lease: _Optional[_Union[Lease, _Mapping]] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("lease_id", "lends")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    LENDS_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    lends: bool
    def __init__(self, lease_id: _Optional[str] = ..., lends: _Optional[bool] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("ttl_seconds", "wanted_seconds")
    TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WANTED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ttl_seconds: float
    wanted_seconds: float
    def __init__(self, ttl_seconds: _Optional[float] = ..., wanted_seconds: _Optional[float] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("lease_id", "device_lost", "why")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_LOST_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    device_lost: bool
    why: str
    def __init__(self, lease_id: _Optional[str] = ..., device_lost: _Optional[bool] = ..., why: _Optional[str] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeviceState(_message.Message):
    __slots__ = ("device", "owner", "user", "leased_seconds", "draining", "quarantine", "resting", "usage", "lately", "refused")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    LEASED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    QUARANTINE_FIELD_NUMBER: _ClassVar[int]
    RESTING_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    LATELY_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    device: DeviceInfo
    owner: str
    user: str
    leased_seconds: float
    draining: str
    quarantine: str
    resting: str
    usage: Usage
    lately: Usage
    refused: int
    def __init__(self, device: _Optional[_Union[DeviceInfo, _Mapping]] = ..., owner: _Optional[str] = ..., user: _Optional[str] = ..., leased_seconds: _Optional[float] = ..., draining: _Optional[str] = ..., quarantine: _Optional[str] = ..., resting: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., lately: _Optional[_Union[Usage, _Mapping]] = ..., refused: _Optional[int] = ...) -> None: ...

class Waiting(_message.Message):
    __slots__ = ("owner", "user", "priority", "waited_seconds")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    WAITED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    owner: str
    user: str
    priority: int
    waited_seconds: float
    def __init__(self, owner: _Optional[str] = ..., user: _Optional[str] = ..., priority: _Optional[int] = ..., waited_seconds: _Optional[float] = ...) -> None: ...

class ListDevicesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDevicesResponse(_message.Message):
    __slots__ = ("devices", "waiting")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[DeviceState]
    waiting: _containers.RepeatedCompositeFieldContainer[Waiting]
    def __init__(self, devices: _Optional[_Iterable[_Union[DeviceState, _Mapping]]] = ..., waiting: _Optional[_Iterable[_Union[Waiting, _Mapping]]] = ...) -> None: ...

class ListRefusedRunsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListRefusedRunsResponse(_message.Message):
    __slots__ = ("runs",)
    RUNS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RefusedRun]
    def __init__(self, runs: _Optional[_Iterable[_Union[RefusedRun, _Mapping]]] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ("name", "why")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    name: str
    why: str
    def __init__(self, name: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class DrainResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadmitRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ReadmitResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
