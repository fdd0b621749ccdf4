"""Large weights stay in the model's file until they are wanted; what comes is as it always was."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.frontend.file import read_model, tensor_array
from driver.network.frontend.lazy_weights import HERE, thin_model
from driver.network.frontend.whole_model import files_beside, model_digest
from driver.network.graph.ir import Conv2d

CHANNELS = 200
WEIGHT = np.random.default_rng(0).standard_normal((CHANNELS, 3, 8, 8)).astype(np.float32)
NODES = [node("Conv", ["x", "w"], "y", kernel_shape=[8, 8])]


def large(dtype: type = np.float32) -> onnx.ModelProto:
    return model(NODES, {"w": WEIGHT.astype(dtype)}, x=(1, 3, 8, 8))


def imported(file: Path) -> np.ndarray:
    (layer,) = [each.op for each in import_model(file).nodes if isinstance(each.op, Conv2d)]
    return layer.weight


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_weight_in_the_file_is_the_same_array(dtype: type, tmp_path: Path) -> None:
    file = saved(large(dtype), tmp_path)
    (tensor,) = read_model(file).graph.initializer
    assert tensor.data_location == onnx.TensorProto.EXTERNAL
    assert not tensor.raw_data
    np.testing.assert_array_equal(tensor_array(tensor, file), WEIGHT.astype(dtype))
    np.testing.assert_array_equal(imported(file), WEIGHT.astype(dtype).astype(np.float32))


def test_a_type_that_numpy_lacks_is_decoded_as_before(tmp_path: Path) -> None:
    made = large()
    tensor = made.graph.initializer[0]
    bfloat16 = (WEIGHT.view(np.uint32) >> 16).astype(np.uint16)
    tensor.data_type, tensor.raw_data = onnx.TensorProto.BFLOAT16, bfloat16.tobytes()
    file = saved(made, tmp_path)
    (read,) = read_model(file).graph.initializer
    wanted = (bfloat16.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(tensor_array(read, file).astype(np.float32), wanted)


def test_the_rest_of_the_model_is_untouched() -> None:
    made = large()
    thin = onnx.ModelProto.FromString(thin_model(memoryview(made.SerializeToString())))
    (tensor,) = thin.graph.initializer
    assert {entry.key: entry.value for entry in tensor.external_data}["location"] == HERE
    assert (tensor.name, list(tensor.dims)) == ("w", list(WEIGHT.shape))
    for each in (thin, made):
        del each.graph.initializer[:]
    assert thin == made


def test_small_weights_and_those_of_other_files_stay_as_they_are() -> None:
    small = model([node("Conv", ["x", "w"], "y")], {"w": np.zeros((1, 3, 1, 1), np.float32)})
    beside = large()
    tensor = beside.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    twice = large()
    doubled = twice.SerializeToString()
    for content in (small.SerializeToString(), beside.SerializeToString()):
        assert onnx.ModelProto.FromString(thin_model(memoryview(content))) == (
            onnx.ModelProto.FromString(content)
        )
    assert len(thin_model(memoryview(doubled))) < 2000


def test_a_file_that_is_linked_from_elsewhere_has_its_weights(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "models").mkdir()
    link = tmp_path / "models" / "model.onnx"
    link.symlink_to(saved(large(), tmp_path / "blobs"))
    np.testing.assert_array_equal(imported(link), WEIGHT)
    assert files_beside(link) == {}
    assert model_digest(link).hex == model_digest(link.resolve()).hex


@pytest.mark.parametrize("left", [0.001, 0.3, 0.9, 0.999])
def test_a_file_that_was_cut_off_says_so(left: float, tmp_path: Path) -> None:
    file = saved(large(), tmp_path)
    content = file.read_bytes()
    file.write_bytes(content[: int(left * len(content))])
    with pytest.raises(ModelError, match="cut off"):
        import_model(file)


def test_a_weight_of_too_few_bytes_is_a_reason(tmp_path: Path) -> None:
    made = large()
    made.graph.initializer[0].dims[0] = 10 * CHANNELS
    with pytest.raises(ModelError, match="weight 'w': "):
        import_model(saved(made, tmp_path))


def test_a_large_model_is_held_once(tmp_path: Path) -> None:
    """10 layers of 4 MiB: the file, its message and its arrays would be three times that."""
    rng = np.random.default_rng(0)
    weights = {f"w{n}": rng.standard_normal((1024, 1024)).astype(np.float32) for n in range(10)}
    nodes = [node("Flatten", ["x"], "y0")] + [
        node("MatMul", [f"y{n}", f"w{n}"], f"y{n + 1}") for n in range(10)
    ]
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1024, 1, 1])
    y = onnx.helper.make_tensor_value_info("y10", onnx.TensorProto.FLOAT, [1, 1024])
    initializers = [onnx.numpy_helper.from_array(values, name) for name, values in weights.items()]
    graph = onnx.helper.make_graph(nodes, "tower", [x], [y], initializers)
    opset = [onnx.helper.make_opsetid("", 17)]
    file = saved(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path)
    total = sum(values.nbytes for values in weights.values())
    tracemalloc.start()
    imported_graph = import_model(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(imported_graph.nodes) >= 10
    assert peak < 2.5 * total
