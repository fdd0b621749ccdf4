"""VTA as one value: what the compiler does for it."""

from __future__ import annotations

from typing import Final

from tilefarm.machine import VTA as KIND

from compile_worker.machine import Machine
from compile_worker.machines.vta.features import features_of
from compile_worker.machines.vta.objects import program_object, vta_object, vta_text
from compile_worker.machines.vta.pipeline import VTA_PASSES
from compile_worker.machines.vta.space.bounds import bounds_of
from compile_worker.machines.vta.space.generated import generated

VTA: Final = Machine(
    kind=KIND,
    passes=VTA_PASSES,
    text=vta_text,
    build=vta_object,
    program=program_object,
    features=features_of,
    space=generated,
    bounds=bounds_of,
)
