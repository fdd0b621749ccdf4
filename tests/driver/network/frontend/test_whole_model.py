"""A model and the files beside it: which there are, and one digest of all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved, saved_beside
from tilefarm.digest import Digest
from tilefarm.errors import ModelError

from driver.network.frontend.whole_model import files_beside, model_digest


def network() -> onnx.ModelProto:
    weights = {"w": np.ones((2, 3, 1, 1), np.float32), "b": np.ones(2, np.float32)}
    return model([node("Conv", ["x", "w", "b"], "y")], weights)


def test_a_model_in_one_file_is_that_file(tmp_path: Path) -> None:
    file = saved(network(), tmp_path)
    assert files_beside(file) == {}
    assert model_digest(file) == Digest.of(file.read_bytes())


def test_weights_beside_a_model_are_a_part_of_it(tmp_path: Path) -> None:
    file = saved_beside(network(), tmp_path)
    assert files_beside(file) == {"w/net.bin": tmp_path.resolve() / "w/net.bin"}
    before, weights = model_digest(file), (tmp_path / "w/net.bin").read_bytes()
    assert model_digest(file) == before
    (tmp_path / "w/net.bin").write_bytes(weights[::-1])
    assert model_digest(file) != before


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    file = saved_beside(network(), tmp_path)
    (tmp_path / "w/net.bin").unlink()
    with pytest.raises(ModelError, match=r"'w/net\.bin': No such file .*\n  try: weights belong"):
        model_digest(file)
