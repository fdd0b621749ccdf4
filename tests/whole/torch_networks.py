"""Small networks of PyTorch with random weights, as their authors write them, and their export.

Those of images are torchvision's classes at small widths; those of tokens are written out here.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
import torchvision
from torch import nn
from torch.nn import functional
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.efficientnet import EfficientNet, MBConvConfig
from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
from torchvision.models.regnet import BlockParams, RegNet

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]
_WORDS, _TOKENS, _WIDTH, _HEADS = 50, 8, 32, 2


def _image() -> tuple[torch.Tensor]:
    return (torch.randn(1, 3, 32, 32),)


def vit() -> Made:
    """A vision transformer of two blocks."""
    made = torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)
    nn.init.normal_(made.heads[0].weight)
    return made, _image()


def swin() -> Made:
    """Windows that shift, and patches that merge."""
    made = torchvision.models.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=10)
    return made, _image()


def convnext() -> Made:
    """Depthwise kernels of 7, and normalizations along the channels."""
    blocks = [CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 1)]
    return torchvision.models.ConvNeXt(blocks, num_classes=10), _image()


def efficientnet() -> Made:
    """Inverted residuals with swishes, and gates of channels."""
    blocks = [MBConvConfig(1, 3, 1, 16, 16, 1), MBConvConfig(4, 3, 2, 16, 24, 2)]
    return EfficientNet(blocks, 0.2, num_classes=10, last_channel=64), _image()


def regnet() -> Made:
    """Groups of channels, and gates of these."""
    blocks = BlockParams.from_init_params(
        depth=3, w_0=16, w_a=8.0, w_m=2.0, group_width=8, se_ratio=0.25
    )
    return RegNet(blocks, num_classes=10, stem_width=8), _image()


def mobilenet_v3() -> Made:
    """Hard swishes and hard gates."""
    block = partial(InvertedResidualConfig, width_mult=1.0)
    blocks = [
        block(16, 3, 16, 16, True, "RE", 2, 1),
        block(16, 5, 48, 24, True, "HS", 2, 1),
    ]
    return MobileNetV3(blocks, 64, num_classes=10), _image()


def shufflenet() -> Made:
    """Channels that are split, and shuffled."""
    return torchvision.models.ShuffleNetV2([2, 2, 1], [8, 16, 32, 64, 64], num_classes=10), _image()


class _Attention(nn.Module):
    """Attention of heads, by hand or by PyTorch's own function."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.into = nn.Linear(_WIDTH, 3 * _WIDTH)
        self.back = nn.Linear(_WIDTH, _WIDTH)
        self.whole = whole
        past = torch.tril(torch.ones(2 * _TOKENS, 2 * _TOKENS))
        self.register_buffer("past", past.view(1, 1, 2 * _TOKENS, 2 * _TOKENS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        parts = self.into(x).split(width, dim=2)
        q, k, v = (p.view(batch, tokens, _HEADS, -1).transpose(1, 2) for p in parts)
        if self.whole:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
            scores = scores.masked_fill(self.past[:, :, :tokens, :tokens] == 0, float("-inf"))
            y = functional.softmax(scores, dim=-1) @ v
        return self.back(y.transpose(1, 2).contiguous().view(batch, tokens, width))


class _Block(nn.Module):
    """A block of a decoder: attention to what was before, and two layers."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
        self.attention = _Attention(whole=whole)
        self.up, self.down = nn.Linear(_WIDTH, 2 * _WIDTH), nn.Linear(2 * _WIDTH, _WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        h = self.up(self.second(x))
        gate = torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0)))
        return x + self.down(0.5 * h * (1.0 + gate))


class _Decoder(nn.Module):
    """A decoder without a cache: the next token's scores for every token."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(_WORDS, _WIDTH), nn.Embedding(2 * _TOKENS, _WIDTH)
        self.blocks = nn.Sequential(_Block(whole=whole), _Block(whole=whole))
        self.last = nn.LayerNorm(_WIDTH)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        at = torch.arange(0, ids.size(1), dtype=torch.long)
        x = self.last(self.blocks(self.words(ids) + self.places(at)))
        return x @ self.words.weight.t()


class _Encoder(nn.Module):
    """An encoder of two kinds of tokens whose padding is masked, and its classes."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(_WORDS, _WIDTH), nn.Embedding(_TOKENS, _WIDTH)
        self.kinds, self.norm = nn.Embedding(2, _WIDTH), nn.LayerNorm(_WIDTH)
        self.into, self.back = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
        self.pool, self.classes = nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, 3)

    def forward(
        self, ids: torch.Tensor, attention_mask: torch.Tensor, kinds: torch.Tensor
    ) -> torch.Tensor:
        mask = (1.0 - attention_mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        x = self.norm(self.words(ids) + self.kinds(kinds) + self.places.weight)
        parts = self.into(x).split(_WIDTH, dim=2)
        q, k, v = (p.view(*x.shape[:2], _HEADS, -1).permute(0, 2, 1, 3) for p in parts)
        scores = q @ k.transpose(-1, -2) / math.sqrt(_WIDTH // _HEADS) + mask
        y = (functional.softmax(scores, -1) @ v).permute(0, 2, 1, 3).reshape(x.shape)
        x = functional.gelu(self.norm(self.back(y) + x))
        return self.classes(torch.tanh(self.pool(x[:, 0])))


def _ids() -> torch.Tensor:
    return torch.randint(0, _WORDS, (1, _TOKENS))


def gpt() -> Made:
    """A decoder as GPT-2 is, its attention by hand."""
    return _Decoder(whole=False), (_ids(),)


def gpt_whole() -> Made:
    """The same with PyTorch's own attention."""
    return _Decoder(whole=True), (_ids(),)


def bert() -> Made:
    """An encoder as BERT is, with a mask and kinds of tokens."""
    mask = torch.tensor([[1] * (_TOKENS - 2) + [0, 0]])
    return _Encoder(), (_ids(), mask, torch.zeros(1, _TOKENS, dtype=torch.long))


NETWORKS: Final[Mapping[str, Callable[[], Made]]] = {
    each.__name__: each
    for each in (
        *(vit, swin, convnext, efficientnet, regnet, mobilenet_v3, shufflenet),
        *(gpt, gpt_whole, bert),
    )
}
"""Name -> the network and inputs for it."""


def exported(name: str, folder: Path, *, dynamo: bool) -> tuple[Path, list[Any], Any]:
    """A network as one of PyTorch's two exporters writes it, with inputs and its own answer."""
    torch.manual_seed(0)
    network, inputs = NETWORKS[name]()
    network.eval()
    with torch.no_grad():
        answer = network(*inputs).numpy()
    file = folder / f"{name}.onnx"
    options: dict[str, Any] = {} if dynamo else {"opset_version": 17}
    quiet = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(quiet):
        warnings.simplefilter("ignore")
        torch.onnx.export(network, inputs, str(file), dynamo=dynamo, external_data=False, **options)
    return file, [each.numpy() for each in inputs], answer
