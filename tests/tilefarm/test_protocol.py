"""Schemas, generated code and the table of methods say the same."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from google.protobuf.descriptor import MethodDescriptor
from tilefarm.rpc import methods
from tilefarm.v1 import device_pb2, tracker_pb2

PROTO = Path(__file__).resolve().parents[2] / "proto"
TABLE = {
    (value.service, value.name): value
    for value in vars(methods).values()
    if isinstance(value, methods.Method)
}
SERVICES = (
    device_pb2.DESCRIPTOR.services_by_name["DeviceService"],
    tracker_pb2.DESCRIPTOR.services_by_name["TrackerService"],
)
RPCS: list[MethodDescriptor] = [rpc for service in SERVICES for rpc in service.methods]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", PROTO / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_code_is_fresh(tmp_path: Path) -> None:
    module = generator()
    try:
        version = importlib.metadata.version("grpcio-tools")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("grpcio-tools is not installed")
    assert version == module.GENERATOR_VERSION
    made = module.generate(tmp_path)
    assert len(made) == 4
    assert module.stale(made, tmp_path) == [], "run proto/generate.py"
    made[0].write_text("something else")
    assert module.stale(made, tmp_path) == [made[0].relative_to(tmp_path)]


def test_the_table_has_every_rpc_and_no_other() -> None:
    assert set(TABLE) == {(rpc.containing_service.full_name, rpc.name) for rpc in RPCS}


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.name)
def test_a_method_is_what_its_schema_says(rpc: MethodDescriptor) -> None:
    method = TABLE[rpc.containing_service.full_name, rpc.name]
    assert method.path == f"/{rpc.containing_service.full_name}/{rpc.name}"
    assert method.request.message == rpc.input_type.full_name
    assert method.reply.message == rpc.output_type.full_name
    assert method.sends_many == rpc.client_streaming
    assert method.answers_many == rpc.server_streaming


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: rpc.name)
def test_messages_belong_to_one_rpc_each(rpc: MethodDescriptor) -> None:
    assert rpc.input_type.name == f"{rpc.name}Request"
    assert rpc.output_type.name == f"{rpc.name}Response"


def test_enums_begin_unspecified() -> None:
    for file in (device_pb2.DESCRIPTOR, tracker_pb2.DESCRIPTOR):
        for enum in file.enum_types_by_name.values():
            prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper()
            assert enum.values_by_number[0].name == f"{prefix}_UNSPECIFIED"
