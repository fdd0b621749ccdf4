from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Label(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class DeviceInfo(_message.Message):
    __slots__ = ("name", "address", "target", "runtime", "sandbox", "epoch", "labels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    target: bytes
    runtime: str
    sandbox: str
    epoch: str
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., target: _Optional[bytes] = ..., runtime: _Optional[str] = ..., sandbox: _Optional[str] = ..., epoch: _Optional[str] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("lease_id", "device", "fence", "ttl_seconds")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    device: DeviceInfo
    fence: int
    ttl_seconds: float
    def __init__(self, lease_id: _Optional[str] = ..., device: _Optional[_Union[DeviceInfo, _Mapping]] = ..., fence: _Optional[int] = ..., ttl_seconds: _Optional[float] = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("device", "fence")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    device: DeviceInfo
    fence: int
    def __init__(self, device: _Optional[_Union[DeviceInfo, _Mapping]] = ..., fence: _Optional[int] = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("heartbeat_seconds",)
    HEARTBEAT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    heartbeat_seconds: float
    def __init__(self, heartbeat_seconds: _Optional[float] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("name", "epoch")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    name: str
    epoch: str
    def __init__(self, name: _Optional[str] = ..., epoch: _Optional[str] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("known",)
    KNOWN_FIELD_NUMBER: _ClassVar[int]
    known: bool
    def __init__(self, known: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("request_id", "target", "labels", "wait_seconds", "owner")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    target: bytes
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    wait_seconds: float
    owner: str
    def __init__(self, request_id: _Optional[str] = ..., target: _Optional[bytes] = ..., labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., wait_seconds: _Optional[float] = ..., owner: _Optional[str] = ...) -> None: ...

class AcquireResponse(_message.Message):
    __slots__ = ("lease",)
    LEASE_FIELD_NUMBER: _ClassVar[int]
    lease: Lease
    def __init__(self, lease: _Optional[_Union[Lease, _Mapping]] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("lease_id",)
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    def __init__(self, lease_id: _Optional[str] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("ttl_seconds",)
    TTL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ttl_seconds: float
    def __init__(self, ttl_seconds: _Optional[float] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("lease_id", "device_lost")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    DEVICE_LOST_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    device_lost: bool
    def __init__(self, lease_id: _Optional[str] = ..., device_lost: _Optional[bool] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DeviceState(_message.Message):
    __slots__ = ("device", "owner")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    device: DeviceInfo
    owner: str
    def __init__(self, device: _Optional[_Union[DeviceInfo, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class ListDevicesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListDevicesResponse(_message.Message):
    __slots__ = ("devices",)
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[DeviceState]
    def __init__(self, devices: _Optional[_Iterable[_Union[DeviceState, _Mapping]]] = ...) -> None: ...
