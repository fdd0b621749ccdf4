from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_CONSTANT: _ClassVar[Role]
    ROLE_INPUT: _ClassVar[Role]
    ROLE_OUTPUT: _ClassVar[Role]
    ROLE_SCRATCH: _ClassVar[Role]

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATUS_UNSPECIFIED: _ClassVar[Status]
    STATUS_OK: _ClassVar[Status]
    STATUS_COMPILE_ERROR: _ClassVar[Status]
    STATUS_COMPILE_CRASH: _ClassVar[Status]
    STATUS_COMPILE_TIMEOUT: _ClassVar[Status]
    STATUS_VERIFY_REJECTED: _ClassVar[Status]
    STATUS_LOAD_ERROR: _ClassVar[Status]
    STATUS_RUN_CRASH: _ClassVar[Status]
    STATUS_RUN_TIMEOUT: _ClassVar[Status]
    STATUS_WRONG_RESULT: _ClassVar[Status]
    STATUS_RESOURCE_EXCEEDED: _ClassVar[Status]
    STATUS_DEVICE_LOST: _ClassVar[Status]
    STATUS_CANCELLED: _ClassVar[Status]
    STATUS_INFRA_ERROR: _ClassVar[Status]
    STATUS_IMPLAUSIBLE: _ClassVar[Status]
ROLE_UNSPECIFIED: Role
ROLE_CONSTANT: Role
ROLE_INPUT: Role
ROLE_OUTPUT: Role
ROLE_SCRATCH: Role
STATUS_UNSPECIFIED: Status
STATUS_OK: Status
STATUS_COMPILE_ERROR: Status
STATUS_COMPILE_CRASH: Status
STATUS_COMPILE_TIMEOUT: Status
STATUS_VERIFY_REJECTED: Status
STATUS_LOAD_ERROR: Status
STATUS_RUN_CRASH: Status
STATUS_RUN_TIMEOUT: Status
STATUS_WRONG_RESULT: Status
STATUS_RESOURCE_EXCEEDED: Status
STATUS_DEVICE_LOST: Status
STATUS_CANCELLED: Status
STATUS_INFRA_ERROR: Status
STATUS_IMPLAUSIBLE: Status

class Claim(_message.Message):
    __slots__ = ("lease_id", "fence", "epoch", "ticket")
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    fence: int
    epoch: str
    ticket: bytes
    def __init__(self, lease_id: _Optional[str] = ..., fence: _Optional[int] = ..., epoch: _Optional[str] = ..., ticket: _Optional[bytes] = ...) -> None: ...

class GetCapabilitiesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCapabilitiesResponse(_message.Message):
    __slots__ = ("protocol", "name", "target", "runtime", "sandbox", "epoch", "max_blob_nbytes", "self_test", "protocol_minor", "spoiled_fence")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MAX_BLOB_NBYTES_FIELD_NUMBER: _ClassVar[int]
    SELF_TEST_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MINOR_FIELD_NUMBER: _ClassVar[int]
    SPOILED_FENCE_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    name: str
    target: bytes
    runtime: str
    sandbox: str
    epoch: str
    max_blob_nbytes: int
    self_test: str
    protocol_minor: int
    spoiled_fence: int
    def __init__(self, protocol: _Optional[int] = ..., name: _Optional[str] = ..., target: _Optional[bytes] = ..., runtime: _Optional[str] = ..., sandbox: _Optional[str] = ..., epoch: _Optional[str] = ..., max_blob_nbytes: _Optional[int] = ..., self_test: _Optional[str] = ..., protocol_minor: _Optional[int] = ..., spoiled_fence: _Optional[int] = ...) -> None: ...

class FindMissingRequest(_message.Message):
    __slots__ = ("digests",)
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    digests: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, digests: _Optional[_Iterable[bytes]] = ...) -> None: ...

class FindMissingResponse(_message.Message):
    __slots__ = ("missing",)
    MISSING_FIELD_NUMBER: _ClassVar[int]
    missing: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, missing: _Optional[_Iterable[bytes]] = ...) -> None: ...

class QueryWriteRequest(_message.Message):
    __slots__ = ("claim", "digest")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    digest: bytes
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., digest: _Optional[bytes] = ...) -> None: ...

class QueryWriteResponse(_message.Message):
    __slots__ = ("committed_nbytes",)
    COMMITTED_NBYTES_FIELD_NUMBER: _ClassVar[int]
    committed_nbytes: int
    def __init__(self, committed_nbytes: _Optional[int] = ...) -> None: ...

class WriteRequest(_message.Message):
    __slots__ = ("claim", "digest", "offset", "data", "finish")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    digest: bytes
    offset: int
    data: bytes
    finish: bool
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., digest: _Optional[bytes] = ..., offset: _Optional[int] = ..., data: _Optional[bytes] = ..., finish: _Optional[bool] = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ("stored_nbytes",)
    STORED_NBYTES_FIELD_NUMBER: _ClassVar[int]
    stored_nbytes: int
    def __init__(self, stored_nbytes: _Optional[int] = ...) -> None: ...

class LoadModuleRequest(_message.Message):
    __slots__ = ("claim", "artifact", "signature")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    artifact: bytes
    signature: bytes
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., artifact: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class LoadModuleResponse(_message.Message):
    __slots__ = ("rejection",)
    REJECTION_FIELD_NUMBER: _ClassVar[int]
    rejection: str
    def __init__(self, rejection: _Optional[str] = ...) -> None: ...

class BufferSpec(_message.Message):
    __slots__ = ("name", "role", "nbytes", "content", "expected", "fetch")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NBYTES_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: Role
    nbytes: int
    content: bytes
    expected: bytes
    fetch: bool
    def __init__(self, name: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., nbytes: _Optional[int] = ..., content: _Optional[bytes] = ..., expected: _Optional[bytes] = ..., fetch: _Optional[bool] = ...) -> None: ...

class Precision(_message.Message):
    __slots__ = ("error", "seconds")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    error: float
    seconds: float
    def __init__(self, error: _Optional[float] = ..., seconds: _Optional[float] = ...) -> None: ...

class RunJob(_message.Message):
    __slots__ = ("artifact", "entry", "buffers", "samples", "repeats", "timeout_seconds", "timeline", "precision", "profile")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    BUFFERS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    artifact: bytes
    entry: str
    buffers: _containers.RepeatedCompositeFieldContainer[BufferSpec]
    samples: int
    repeats: int
    timeout_seconds: float
    timeline: bool
    precision: Precision
    profile: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, artifact: _Optional[bytes] = ..., entry: _Optional[str] = ..., buffers: _Optional[_Iterable[_Union[BufferSpec, _Mapping]]] = ..., samples: _Optional[int] = ..., repeats: _Optional[int] = ..., timeout_seconds: _Optional[float] = ..., timeline: _Optional[bool] = ..., precision: _Optional[_Union[Precision, _Mapping]] = ..., profile: _Optional[_Iterable[str]] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("claim", "request_id", "job", "signature", "blobs", "candidate")
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    request_id: str
    job: RunJob
    signature: bytes
    blobs: _containers.RepeatedScalarFieldContainer[bytes]
    candidate: str
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ..., request_id: _Optional[str] = ..., job: _Optional[_Union[RunJob, _Mapping]] = ..., signature: _Optional[bytes] = ..., blobs: _Optional[_Iterable[bytes]] = ..., candidate: _Optional[str] = ...) -> None: ...

class RunBatchRequest(_message.Message):
    __slots__ = ("runs",)
    RUNS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunRequest]
    def __init__(self, runs: _Optional[_Iterable[_Union[RunRequest, _Mapping]]] = ...) -> None: ...

class Counters(_message.Message):
    __slots__ = ("cycles", "instructions", "gemm_uops", "alu_uops", "load_busy_cycles", "compute_busy_cycles", "store_busy_cycles", "inp_load_nbytes", "wgt_load_nbytes", "acc_load_nbytes", "uop_load_nbytes", "out_store_nbytes", "load_token_stall_cycles", "load_queue_stall_cycles", "load_memory_stall_cycles", "compute_token_stall_cycles", "compute_queue_stall_cycles", "compute_memory_stall_cycles", "store_token_stall_cycles", "store_queue_stall_cycles", "store_memory_stall_cycles")
    CYCLES_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    GEMM_UOPS_FIELD_NUMBER: _ClassVar[int]
    ALU_UOPS_FIELD_NUMBER: _ClassVar[int]
    LOAD_BUSY_CYCLES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_BUSY_CYCLES_FIELD_NUMBER: _ClassVar[int]
    STORE_BUSY_CYCLES_FIELD_NUMBER: _ClassVar[int]
    INP_LOAD_NBYTES_FIELD_NUMBER: _ClassVar[int]
    WGT_LOAD_NBYTES_FIELD_NUMBER: _ClassVar[int]
    ACC_LOAD_NBYTES_FIELD_NUMBER: _ClassVar[int]
    UOP_LOAD_NBYTES_FIELD_NUMBER: _ClassVar[int]
    OUT_STORE_NBYTES_FIELD_NUMBER: _ClassVar[int]
    LOAD_TOKEN_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    LOAD_QUEUE_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    LOAD_MEMORY_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_TOKEN_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_QUEUE_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_MEMORY_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    STORE_TOKEN_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    STORE_QUEUE_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    STORE_MEMORY_STALL_CYCLES_FIELD_NUMBER: _ClassVar[int]
    cycles: int
    instructions: int
    gemm_uops: int
    alu_uops: int
    load_busy_cycles: int
    compute_busy_cycles: int
    store_busy_cycles: int
    inp_load_nbytes: int
    wgt_load_nbytes: int
    acc_load_nbytes: int
    uop_load_nbytes: int
    out_store_nbytes: int
    load_token_stall_cycles: int
    load_queue_stall_cycles: int
    load_memory_stall_cycles: int
    compute_token_stall_cycles: int
    compute_queue_stall_cycles: int
    compute_memory_stall_cycles: int
    store_token_stall_cycles: int
    store_queue_stall_cycles: int
    store_memory_stall_cycles: int
    def __init__(self, cycles: _Optional[int] = ..., instructions: _Optional[int] = ..., gemm_uops: _Optional[int] = ..., alu_uops: _Optional[int] = ..., load_busy_cycles: _Optional[int] = ..., compute_busy_cycles: _Optional[int] = ..., store_busy_cycles: _Optional[int] = ..., inp_load_nbytes: _Optional[int] = ..., wgt_load_nbytes: _Optional[int] = ..., acc_load_nbytes: _Optional[int] = ..., uop_load_nbytes: _Optional[int] = ..., out_store_nbytes: _Optional[int] = ..., load_token_stall_cycles: _Optional[int] = ..., load_queue_stall_cycles: _Optional[int] = ..., load_memory_stall_cycles: _Optional[int] = ..., compute_token_stall_cycles: _Optional[int] = ..., compute_queue_stall_cycles: _Optional[int] = ..., compute_memory_stall_cycles: _Optional[int] = ..., store_token_stall_cycles: _Optional[int] = ..., store_queue_stall_cycles: _Optional[int] = ..., store_memory_stall_cycles: _Optional[int] = ...) -> None: ...

class NamedBlob(_message.Message):
    __slots__ = ("name", "digest")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    digest: bytes
    def __init__(self, name: _Optional[str] = ..., digest: _Optional[bytes] = ...) -> None: ...

class WallTime(_message.Message):
    __slots__ = ("minimum_seconds", "p10_seconds", "median_seconds", "p90_seconds", "calls", "regions", "rejected", "preemptions", "stolen_seconds", "begin_mhz", "end_mhz")
    MINIMUM_SECONDS_FIELD_NUMBER: _ClassVar[int]
    P10_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    P90_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    REGIONS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONS_FIELD_NUMBER: _ClassVar[int]
    STOLEN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_MHZ_FIELD_NUMBER: _ClassVar[int]
    END_MHZ_FIELD_NUMBER: _ClassVar[int]
    minimum_seconds: float
    p10_seconds: float
    median_seconds: float
    p90_seconds: float
    calls: int
    regions: int
    rejected: int
    preemptions: int
    stolen_seconds: float
    begin_mhz: float
    end_mhz: float
    def __init__(self, minimum_seconds: _Optional[float] = ..., p10_seconds: _Optional[float] = ..., median_seconds: _Optional[float] = ..., p90_seconds: _Optional[float] = ..., calls: _Optional[int] = ..., regions: _Optional[int] = ..., rejected: _Optional[int] = ..., preemptions: _Optional[int] = ..., stolen_seconds: _Optional[float] = ..., begin_mhz: _Optional[float] = ..., end_mhz: _Optional[float] = ...) -> None: ...

class CallTime(_message.Message):
    __slots__ = ("cycles", "wall_time")
    CYCLES_FIELD_NUMBER: _ClassVar[int]
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    cycles: int
    wall_time: WallTime
    def __init__(self, cycles: _Optional[int] = ..., wall_time: _Optional[_Union[WallTime, _Mapping]] = ...) -> None: ...

class Measurement(_message.Message):
    __slots__ = ("artifact", "device", "counters", "seconds", "sample_cycles", "load_seconds", "run_seconds", "wall_time", "profile")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_CYCLES_FIELD_NUMBER: _ClassVar[int]
    LOAD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RUN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WALL_TIME_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    artifact: bytes
    device: str
    counters: Counters
    seconds: _containers.RepeatedScalarFieldContainer[float]
    sample_cycles: _containers.RepeatedScalarFieldContainer[int]
    load_seconds: float
    run_seconds: float
    wall_time: WallTime
    profile: _containers.RepeatedCompositeFieldContainer[CallTime]
    def __init__(self, artifact: _Optional[bytes] = ..., device: _Optional[str] = ..., counters: _Optional[_Union[Counters, _Mapping]] = ..., seconds: _Optional[_Iterable[float]] = ..., sample_cycles: _Optional[_Iterable[int]] = ..., load_seconds: _Optional[float] = ..., run_seconds: _Optional[float] = ..., wall_time: _Optional[_Union[WallTime, _Mapping]] = ..., profile: _Optional[_Iterable[_Union[CallTime, _Mapping]]] = ...) -> None: ...

class RunFailure(_message.Message):
    __slots__ = ("artifact", "status", "why", "device", "signal", "mismatch", "run_seconds", "untimed")
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    MISMATCH_FIELD_NUMBER: _ClassVar[int]
    RUN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UNTIMED_FIELD_NUMBER: _ClassVar[int]
    artifact: bytes
    status: Status
    why: str
    device: str
    signal: int
    mismatch: str
    run_seconds: float
    untimed: bool
    def __init__(self, artifact: _Optional[bytes] = ..., status: _Optional[_Union[Status, str]] = ..., why: _Optional[str] = ..., device: _Optional[str] = ..., signal: _Optional[int] = ..., mismatch: _Optional[str] = ..., run_seconds: _Optional[float] = ..., untimed: _Optional[bool] = ...) -> None: ...

class RunResponse(_message.Message):
    __slots__ = ("measurement", "failure", "outputs", "timeline", "queue_seconds", "unchecked", "served")
    MEASUREMENT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UNCHECKED_FIELD_NUMBER: _ClassVar[int]
    SERVED_FIELD_NUMBER: _ClassVar[int]
    measurement: Measurement
    failure: RunFailure
    outputs: _containers.RepeatedCompositeFieldContainer[NamedBlob]
    timeline: bytes
    queue_seconds: float
    unchecked: int
    served: bytes
    def __init__(self, measurement: _Optional[_Union[Measurement, _Mapping]] = ..., failure: _Optional[_Union[RunFailure, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[NamedBlob, _Mapping]]] = ..., timeline: _Optional[bytes] = ..., queue_seconds: _Optional[float] = ..., unchecked: _Optional[int] = ..., served: _Optional[bytes] = ...) -> None: ...

class RunBatchResponse(_message.Message):
    __slots__ = ("runs",)
    RUNS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[RunResponse]
    def __init__(self, runs: _Optional[_Iterable[_Union[RunResponse, _Mapping]]] = ...) -> None: ...

class CheckRequest(_message.Message):
    __slots__ = ("claim",)
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    claim: Claim
    def __init__(self, claim: _Optional[_Union[Claim, _Mapping]] = ...) -> None: ...

class CheckResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TimelineEvent(_message.Message):
    __slots__ = ("module", "name", "begin_cycle", "end_cycle")
    MODULE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BEGIN_CYCLE_FIELD_NUMBER: _ClassVar[int]
    END_CYCLE_FIELD_NUMBER: _ClassVar[int]
    module: str
    name: str
    begin_cycle: int
    end_cycle: int
    def __init__(self, module: _Optional[str] = ..., name: _Optional[str] = ..., begin_cycle: _Optional[int] = ..., end_cycle: _Optional[int] = ...) -> None: ...

class Timeline(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[TimelineEvent]
    def __init__(self, events: _Optional[_Iterable[_Union[TimelineEvent, _Mapping]]] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("digest",)
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    digest: bytes
    def __init__(self, digest: _Optional[bytes] = ...) -> None: ...

class ReadResponse(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...
