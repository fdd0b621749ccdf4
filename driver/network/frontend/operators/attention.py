"""Attention and RotaryEmbedding as ONNX defines them, written as the steps that they stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from typing import Final

import numpy as np

from driver.network.frontend.call import OnnxCall, RefusedError
from driver.network.frontend.operators.binary import MASK
from driver.network.frontend.steps import FLOAT, Composition, Steps, operand

_WITH_MASK: Final = 2
_MOST_OUTPUTS: Final = 4
_HELD: Final = 4
"""The axes of queries, keys and values: batch, head, token, channel."""


def attention(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """Attention: heads that may share keys, masks, what was there before, a cap, any output."""
    rank = len(do.shape(call.inputs[0]))
    of_queries, of_keys = call.integer("q_num_heads", 0), call.integer("kv_num_heads", 0)
    query = _in_heads(do, call.inputs[0], of_queries)
    key, value = (_in_heads(do, name, of_keys) for name in call.inputs[1:3])
    before = 0
    if operand(call, 4) or operand(call, 5):
        if not (operand(call, 4) and operand(call, 5)):
            raise RefusedError("has past keys or past values without the other")
        before = do.shape(call.inputs[4])[2]
        key = do("Concat", call.inputs[4], key, axis=2)
        value = do("Concat", call.inputs[5], value, axis=2)
    present = (key, value)
    key, value = (_for_heads(do, name, do.shape(query)[1]) for name in present)
    scale = call.number("scale", 0.0) or do.shape(query)[3] ** -0.5
    found = do("MatMul", query, do("Transpose", key, perm=[0, 1, 3, 2]))
    stages = [do("Mul", found, scale)]
    cap = call.number("softcap", 0.0)
    capped = stages[0]
    if cap > 0:
        capped = do("Mul", do("Tanh", do("Mul", capped, 1 / cap)), cap)
    mask = _mask(call, do, do.shape(capped), before)
    masked = do("Add", capped, mask) if mask else capped
    shares = do("Softmax", masked, axis=-1)
    if mask:
        shares = _without_empty_rows(do, shares, mask)
    # What the fourth output may be: products, these under a cap, with the mask, their softmax.
    stages += [capped, masked, shares]
    result = do("MatMul", shares, value)
    if rank < _HELD:
        result = _joined(do, result)
    shown = call.integer("qk_matmul_output_mode", 0)
    if shown == _WITH_MASK and mask and len(call.outputs) == _MOST_OUTPUTS:
        raise RefusedError("gives masked products out, which may be infinite; only mode 0, 1 and 3")
    return (result, *present, stages[shown % len(stages)])


def _in_heads(do: Steps, name: str, heads: int) -> str:
    """Queries, keys or values with an axis of heads."""
    shape = do.shape(name)
    if len(shape) == _HELD:
        return name
    if len(shape) != _HELD - 1 or heads < 1 or shape[2] % heads:
        raise RefusedError(f"{heads} heads of {list(shape)}")
    split = do("Reshape", name, [*shape[:2], heads, shape[2] // heads])
    return do("Transpose", split, perm=[0, 2, 1, 3])


def _joined(do: Steps, name: str) -> str:
    """The heads of every token next to one another."""
    batch, heads, tokens, channels = do.shape(name)
    turned = do("Transpose", name, perm=[0, 2, 1, 3])
    return do("Reshape", turned, [batch, tokens, heads * channels])


def _for_heads(do: Steps, name: str, heads: int) -> str:
    """Keys or values repeated for all heads that share them."""
    batch, own, tokens, channels = do.shape(name)
    if own == heads:
        return name
    if heads % own:
        raise RefusedError(f"{own} heads of keys for {heads} of queries")
    apart = do("Unsqueeze", name, [2])
    repeated = do("Expand", apart, [batch, own, heads // own, tokens, channels])
    return do("Reshape", repeated, [batch, heads, tokens, channels])


def _mask(call: OnnxCall, do: Steps, scores: tuple[int, ...], before: int) -> str:
    """What is added to scores [batch, head, query, key]: minus infinity where none shall be.

    Queries begin behind `before` keys; where lengths of keys are given, they are the last of these.
    """
    _, _, queries, keys = scores
    lengths = operand(call, 6)
    first = before
    if lengths:
        first = -queries
        lengths = do("Reshape", lengths, [scores[0], 1, 1, 1])
    away = np.arange(keys) - np.arange(queries)[:, None] - first
    left, right = (call.integer(f"{side}_window_size", -1) for side in ("left", "right"))
    allowed = []
    if call.integer("is_causal", 0):
        allowed.append(do("LessOrEqual", away, lengths or 0))
    if left >= 0:
        allowed.append(do("GreaterOrEqual", away + left, lengths or 0))
    if right >= 0:
        allowed.append(do("LessOrEqual", away - right, lengths or 0))
    if lengths:
        allowed.append(do("Less", np.arange(keys), lengths))
    masks = [do("Where", each, 0.0, -math.inf) for each in allowed]
    if mask := operand(call, 3):
        masks.append(_of_all_keys(do, mask, keys))
    return reduce(lambda a, b: do("Add", a, b), masks) if masks else ""


def _without_empty_rows(do: Steps, shares: str, mask: str) -> str:
    """Shares of 0 for queries that no key is left for; their softmax is of equals otherwise."""
    some = do("Greater", do("ReduceMax", mask, [-1], keepdims=1), -MASK / 2)
    value = do.value(some)
    if value is not None and value.all():
        return shares
    return do("Mul", shares, do("Cast", some, to=FLOAT))


def _of_all_keys(do: Steps, mask: str, keys: int) -> str:
    """A mask as an addend, without any of the keys that it does not reach."""
    short = keys - do.shape(mask)[-1]
    added = do("Where", mask, 0.0, -math.inf) if do.is_truth(mask) else mask
    if short > 0:
        rest = np.full((*do.shape(mask)[:-1], short), -MASK, np.float32)
        added = do("Concat", added, rest, axis=-1)
    return added


def rotary_embedding(call: OnnxCall, do: Steps) -> tuple[str, ...]:
    """RotaryEmbedding: pairs of channels turned by the angle of their token."""
    name = call.inputs[0]
    given = do.shape(name)
    heads = _in_heads(do, name, call.integer("num_heads", 0))
    batch, count, tokens, channels = do.shape(heads)
    cosines, sines = (_of_tokens(call, do, index) for index in (1, 2))
    turned = call.integer("rotary_embedding_dim", 0) or channels
    whole, rest = do.several("Split", 2, heads, [turned, channels - turned], axis=3)
    if call.integer("interleaved", 0):
        pairs = do("Reshape", whole, [batch, count, tokens, turned // 2, 2])
        a, b = (do("Squeeze", half, [4]) for half in do.several("Split", 2, pairs, axis=4))
    else:
        a, b = do.several("Split", 2, whole, axis=3)
    real = do("Sub", do("Mul", a, cosines), do("Mul", b, sines))
    imaginary = do("Add", do("Mul", a, sines), do("Mul", b, cosines))
    if call.integer("interleaved", 0):
        parts = [do("Unsqueeze", each, [4]) for each in (real, imaginary)]
        both = do("Reshape", do("Concat", *parts, axis=4), [batch, count, tokens, turned])
    else:
        both = do("Concat", real, imaginary, axis=3)
    result = do("Concat", both, rest, axis=3)
    return (_joined(do, result) if len(given) < _HELD else result,)


def _of_tokens(call: OnnxCall, do: Steps, index: int) -> str:
    """Cosines or sines [batch, 1, token, pair], those of the given positions if there are any."""
    name = call.inputs[index]
    if operand(call, 3):
        name = do("Gather", name, call.inputs[3], axis=0)
    return do("Unsqueeze", name, [1])


COMPOSITIONS: Final[Mapping[str, Composition]] = {
    "Attention": attention,
    "RotaryEmbedding": rotary_embedding,
}
"""What each operator of this kind is written as."""
