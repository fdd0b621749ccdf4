"""Which message carries which record: the only module that touches generated messages."""

from __future__ import annotations

from typing import Final

from tilefarm.measurement import RunJob
from tilefarm.rpc import device_calls, tracker_calls
from tilefarm.rpc.codec import codec
from tilefarm.rpc.empty import Empty
from tilefarm.v1 import device_pb2 as dev
from tilefarm.v1 import tracker_pb2 as trk

REGISTER: Final = codec(trk.RegisterRequest, tracker_calls.Register)
REGISTERED: Final = codec(trk.RegisterResponse, tracker_calls.Registered)
HEARTBEAT: Final = codec(trk.HeartbeatRequest, tracker_calls.Heartbeat)
HEARTBEAT_REPLY: Final = codec(trk.HeartbeatResponse, tracker_calls.HeartbeatReply)
DEREGISTER: Final = codec(trk.DeregisterRequest, tracker_calls.DeviceRef)
DEREGISTERED: Final = codec(trk.DeregisterResponse, Empty)
ACQUIRE: Final = codec(trk.AcquireRequest, tracker_calls.Acquire)
ACQUIRED: Final = codec(trk.AcquireResponse, tracker_calls.Acquired)
RENEW: Final = codec(trk.RenewRequest, tracker_calls.Renew)
RENEWED: Final = codec(trk.RenewResponse, tracker_calls.Renewed)
RELEASE: Final = codec(trk.ReleaseRequest, tracker_calls.Release)
RELEASED: Final = codec(trk.ReleaseResponse, Empty)
LIST_DEVICES: Final = codec(trk.ListDevicesRequest, Empty)
DEVICES: Final = codec(trk.ListDevicesResponse, tracker_calls.Devices, states="devices")
LIST_REFUSED_RUNS: Final = codec(trk.ListRefusedRunsRequest, tracker_calls.ListRefusedRuns)
LISTED_REFUSED_RUNS: Final = codec(trk.ListRefusedRunsResponse, tracker_calls.ListedRefusedRuns)
DRAIN: Final = codec(trk.DrainRequest, tracker_calls.Drain)
DRAINED: Final = codec(trk.DrainResponse, Empty)
READMIT: Final = codec(trk.ReadmitRequest, tracker_calls.Readmit)
READMITTED: Final = codec(trk.ReadmitResponse, Empty)

GET_CAPABILITIES: Final = codec(dev.GetCapabilitiesRequest, Empty)
CAPABILITIES: Final = codec(dev.GetCapabilitiesResponse, device_calls.Capabilities)
FIND_MISSING: Final = codec(dev.FindMissingRequest, device_calls.Digests)
MISSING: Final = codec(dev.FindMissingResponse, device_calls.Digests, digests="missing")
QUERY_WRITE: Final = codec(dev.QueryWriteRequest, device_calls.QueryWrite)
COMMITTED: Final = codec(dev.QueryWriteResponse, device_calls.Committed, nbytes="committed_nbytes")
CHUNK: Final = codec(dev.WriteRequest, device_calls.Chunk)
STORED: Final = codec(dev.WriteResponse, device_calls.Stored, nbytes="stored_nbytes")
LOAD_MODULE: Final = codec(dev.LoadModuleRequest, device_calls.LoadModule)
MODULE_VERDICT: Final = codec(dev.LoadModuleResponse, device_calls.ModuleVerdict)
RUN: Final = codec(dev.RunRequest, device_calls.Run)
RUN_REPLY: Final = codec(dev.RunResponse, device_calls.RunReply)
RUN_BATCH: Final = codec(dev.RunBatchRequest, device_calls.RunBatch)
RUN_BATCH_REPLY: Final = codec(dev.RunBatchResponse, device_calls.RunBatchReply, replies="runs")
CHECK: Final = codec(dev.CheckRequest, device_calls.Check)
CHECKED: Final = codec(dev.CheckResponse, Empty)
READ: Final = codec(dev.ReadRequest, device_calls.Read)
PIECE: Final = codec(dev.ReadResponse, device_calls.Piece)

RUN_JOB: Final = codec(dev.RunJob, RunJob)
"""What a run asks for, whoever asks: its bytes say whether a request is an earlier one again."""
TIMELINE: Final = codec(dev.Timeline, device_calls.Timeline)
