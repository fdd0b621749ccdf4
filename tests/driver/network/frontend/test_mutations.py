"""Models changed at random places: taken, or refused with reasons, in little memory."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.messages.mutations import damaged_bytes, damaged_fields, words_of
from kit.networks.gated import gated
from kit.networks.qdq import layer_weights, two_convolutions, two_qlinear_convolutions
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.examples import DEMO_MODEL

from .dynamic import dynamic_layers
from .stepped import stepped

_MORE_KIBIBYTES = 1 << 20
"""A constant that a mutant asks for may have 256 MiB, and is folded into others."""


def models() -> dict[str, onnx.ModelProto]:
    return {
        "digits": onnx.load(DEMO_MODEL),
        "dynamic": dynamic_layers(),
        "gated": gated(7),
        "pairs": two_convolutions(layer_weights()),
        "stepped": stepped(),
        "qlinear": two_qlinear_convolutions(layer_weights(per_channel=False)),
    }


def survives(name: str, mutants: int, seed: int, folder: Path) -> None:
    """Some mutants are taken, some refused; none does anything else."""
    sound, file = models()[name], folder / "mutant.onnx"
    rng = np.random.default_rng(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refusals = []
    for number in range(mutants):
        if number % 4:
            content = damaged_fields(sound, words_of(sound), rng).SerializeToString()
        else:
            content = damaged_bytes(sound.SerializeToString(), rng)
        file.write_bytes(content)
        try:
            import_model(file)
        except ModelError as refusal:
            refusals.append(refusal.what)
    assert 0 < len(refusals) < mutants
    assert all(str(file) in what for what in refusals)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _MORE_KIBIBYTES


@pytest.mark.parametrize("name", models())
def test_mutants(name: str, tmp_path: Path) -> None:
    survives(name, 10, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", models())
def test_many_mutants(name: str, tmp_path: Path) -> None:
    """The same ones each time; `MUTANTS_SEED` makes others."""
    seed = int(os.environ.get("MUTANTS_SEED", "2"))
    print(f"MUTANTS_SEED={seed}")
    survives(name, 500, seed, tmp_path)
