"""Attention and RotaryEmbedding in their forms, against ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import model_on, node, saved
from numpy.typing import NDArray
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.ir import MatMul, Softmax

from .importing import answers_as_onnx

RNG = np.random.default_rng(3)
TRUTHS = np.array([[True, True, False, True], [True, False, False, True], [False] * 4])


def reals(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def heads(queries: int = 2, keys: int = 2, tokens: int = 4) -> dict[str, NDArray[Any]]:
    """Three queries of each head, and keys and values for them."""
    kv = (1, keys, tokens, 4)
    return {"q": reals(1, queries, 3, 4), "k": reals(*kv), "v": reals(*kv)}


FORMS: dict[str, tuple[dict[str, NDArray[Any]], tuple[str, ...], dict[str, Any]]] = {
    "plain": (heads(), ("q", "k", "v"), {}),
    "scaled": (heads(), ("q", "k", "v"), {"scale": 0.3}),
    "causal": (heads(), ("q", "k", "v"), {"is_causal": 1}),
    "capped": (heads(), ("q", "k", "v"), {"softcap": 0.5}),
    "keys of several heads": (heads(queries=4), ("q", "k", "v"), {}),
    "heads side by side": (
        {"q": reals(1, 3, 8), "k": reals(1, 4, 4), "v": reals(1, 4, 4)},
        ("q", "k", "v"),
        {"q_num_heads": 2, "kv_num_heads": 1},
    ),
    "an added mask": ({**heads(), "m": reals(3, 4)}, ("q", "k", "v", "m"), {}),
    "a mask of truths": ({**heads(), "m": TRUTHS}, ("q", "k", "v", "m"), {}),
    "a short mask": (
        {**heads(tokens=6), "m": TRUTHS},
        ("q", "k", "v", "m"),
        {"is_causal": 1},
    ),
    "what was before": (
        {**heads(), "pk": reals(1, 2, 5, 4), "pv": reals(1, 2, 5, 4)},
        ("q", "k", "v", "", "pk", "pv"),
        {"is_causal": 1},
    ),
    "lengths": (
        {**heads(), "n": np.array([3])},
        ("q", "k", "v", "", "", "", "n"),
        {"is_causal": 1},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_attention(name: str, tmp_path: Path) -> None:
    given, inputs, attrs = FORMS[name]
    made = model_on(given, [node("Attention", inputs, "y", **attrs)], opset=24)
    graph = answers_as_onnx(made, given, tmp_path)
    kinds = [type(each.op) for each in graph.nodes]
    assert (kinds.count(MatMul), kinds.count(Softmax)) == (2, 1)


@pytest.mark.parametrize("mode", [0, 1, 3])
def test_what_attention_is_made_of_may_be_an_output(mode: int, tmp_path: Path) -> None:
    given = heads()
    attrs = {"is_causal": 1, "softcap": 2.0 if mode == 1 else 0.0, "qk_matmul_output_mode": mode}
    attention = node("Attention", ["q", "k", "v"], "y", "", "", "s", **attrs)
    made = model_on(given, [attention], out={"y": "float32", "s": "float32"}, opset=24)
    answers_as_onnx(made, given, tmp_path)


def test_masked_products_are_no_output(tmp_path: Path) -> None:
    given, attrs = heads(), {"is_causal": 1, "qk_matmul_output_mode": 2}
    attention = node("Attention", ["q", "k", "v"], "y", "", "", "s", **attrs)
    made = model_on(given, [attention], out={"y": "float32", "s": "float32"}, opset=24)
    with pytest.raises(ModelError, match="masked products out, which may be infinite"):
        import_model(saved(made, tmp_path))


@pytest.mark.parametrize(
    ("attrs", "why"),
    [({}, "0 heads of"), ({"q_num_heads": 3, "kv_num_heads": 2}, r"3 heads of \[1, 3, 8\]")],
)
def test_heads_that_do_not_fit(attrs: dict[str, int], why: str, tmp_path: Path) -> None:
    given = {name: reals(1, 3, 8) for name in "qkv"}
    made = model_on(given, [node("Attention", ["q", "k", "v"], "y", **attrs)], opset=24)
    with pytest.raises(ModelError, match=why):
        import_model(saved(made, tmp_path))


ANGLES = RNG.uniform(0, 3, (5, 2)).astype(np.float32)
ROTARY: dict[str, tuple[tuple[int, ...], dict[str, int], bool]] = {
    "heads": ((1, 3, 5, 4), {}, False),
    "heads side by side": ((1, 5, 12), {"num_heads": 3}, False),
    "interleaved": ((1, 3, 5, 4), {"interleaved": 1}, False),
    "a part of the channels": ((1, 3, 5, 6), {"rotary_embedding_dim": 4}, False),
    "positions": ((1, 3, 5, 4), {}, True),
}


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_embedding(name: str, tmp_path: Path) -> None:
    shape, attrs, has_positions = ROTARY[name]
    given: dict[str, NDArray[Any]] = {"x": reals(*shape)}
    weights = {"cos": np.cos(ANGLES), "sin": np.sin(ANGLES)}
    if has_positions:
        given["at"] = np.array([[4, 0, 1, 1, 2]])
    else:
        weights = {key: each[None] for key, each in weights.items()}
    inputs = ["x", "cos", "sin", *(["at"] if has_positions else [])]
    made = model_on(given, [node("RotaryEmbedding", inputs, "y", **attrs)], weights, opset=23)
    answers_as_onnx(made, given, tmp_path)
