"""What the zoo's networks are given, and what they must reach: a row a model file.

Figures of ONNX Runtime under `published` are those of the zoo's README. `peer` is the score of ONNX
Runtime 1.31.1 on the very samples of `data`; `tilefarm bench zoo --onnxruntime` measures it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from driver.benchmarks.zoo.samples import Archive, ClipWindows, Idx, RandomInputs, Sheets, Source
from driver.network import SMALL_TOPOLOGIES, ZOO_PREFIX

WITHIN_OF_PEER: Final = 0.005
"""How far a network that was quantized before may be below ONNX Runtime."""
LEAST_SHARE: Final = 0.98
"""Of the multiply-accumulates that run on the accelerator."""

Metric = Literal["accuracy", "auc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooRecipe:
    """How a network is tried.

    Attributes:
        task: what it does, for people.
        data: where its samples are.
        mean, factor: the network takes (x - mean) * factor.
        metric: what its score is, if it has labels.
        labelled: whether the labels of the data are this network's.
        most: labels whose samples are scored at most.
        calibrate: labels at the beginning whose samples calibrate and are not scored; 0 where the
            model gives the ranges.
        gate: the least score as integers.
        published: ONNX Runtime's score in words, as the zoo's README has it.
        peer: ONNX Runtime's score on the samples, for networks that were quantized before.
    """

    task: str
    data: Source | RandomInputs
    mean: float = 0.0
    factor: float = 1.0
    metric: Metric = "accuracy"
    labelled: bool = True
    most: int | None = None
    calibrate: int = 0
    gate: float = 0.0
    published: str = ""
    peer: float | None = None


_IMAGES: Final = Archive("ic01_cifar10_200.npz")
_WORDS: Final = Archive("kws01_speechcmd_1000_int8mfcc.npz")
_WORD_STEP: Final = 0.5847029089927673
_PEOPLE: Final = Sheets("vww01", 96)
_GREY_PEOPLE: Final = Sheets("vww01", 96, grey=True)
_GREY_STEP: Final = 0.0078431
_PHOTOGRAPHS: Final = Archive("in01_imagenet_200_128.npz")
_SOUNDS: Final = ClipWindows(file="ad01_0.npz", values=640, stride=128, per_clip=196)

RECIPES: Final[Mapping[str, ZooRecipe]] = {
    "resnet8_f32_float": ZooRecipe(
        task="CIFAR-10 images",
        data=_IMAGES,
        calibrate=50,
        gate=0.835,
        published="85.5 %",
    ),
    "resnet8_int8_qdq": ZooRecipe(
        task="CIFAR-10 images",
        data=_IMAGES,
        published="84.5 %",
        peer=0.845,
    ),
    "kws_int8_float": ZooRecipe(
        task="keyword spotting",
        data=_WORDS,
        mean=83,
        factor=_WORD_STEP,
        calibrate=200,
        gate=0.89,
        published="90.2 %",
    ),
    "kws_int8_qdq": ZooRecipe(
        task="keyword spotting",
        data=_WORDS,
        mean=83,
        factor=_WORD_STEP,
        published="90.2 %",
        peer=0.902,
    ),
    "vww_f32_float": ZooRecipe(
        task="person or not",
        data=_PEOPLE,
        factor=1 / 255,
        calibrate=50,
        gate=0.83,
        published="85.3 % of 1000",
    ),
    "vww_int8_qdq": ZooRecipe(
        task="person or not",
        data=_PEOPLE,
        factor=1 / 255,
        published="85.2 % of 1000",
        peer=0.85,
    ),
    "ad_f32_float": ZooRecipe(
        task="odd sounds",
        data=_SOUNDS,
        metric="auc",
        calibrate=11,
        gate=0.85,
        published="0.903 of 248 clips",
    ),
    "ad_int8_qdq": ZooRecipe(
        task="odd sounds",
        data=_SOUNDS,
        metric="auc",
        gate=0.816,  # half a point below ONNX Runtime's on the same clips
        published="0.859 of 248 clips",
    ),
    "mnist-8": ZooRecipe(
        task="digits",
        data=Idx("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
        calibrate=200,
        gate=0.985,
        published="98.91 %",
    ),
    "person_detect_float": ZooRecipe(
        task="person or not",
        data=_GREY_PEOPLE,
        mean=127,
        factor=_GREY_STEP,
        calibrate=50,
        published="74.0 %",
    ),
    "person_detect_qdq": ZooRecipe(
        task="person or not",
        data=_GREY_PEOPLE,
        mean=127,
        factor=_GREY_STEP,
        published="73.7 %",
    ),
    "mobilenet_v1_0.25_128_quant_float": ZooRecipe(
        task="ImageNet",
        data=_PHOTOGRAPHS,
        mean=127.5,
        factor=1 / 127.5,
        calibrate=32,
        published="43.0 %",
    ),
    "mobilenet_v1_0.25_128_quant_qdq": ZooRecipe(
        task="ImageNet",
        data=_PHOTOGRAPHS,
        mean=127.5,
        factor=1 / 127.5,
        published="41.0 %",
    ),
    "ultraface_RFB-320_simplified": ZooRecipe(
        task="face detection",
        data=Sheets("vww01", 96, into=(240, 320)),
        mean=127,
        factor=1 / 128,
        labelled=False,
        calibrate=50,
        most=24,
    ),
    "attn_core_2048x48x256": ZooRecipe(task="attention core", data=RandomInputs()),
    "sd_block_tiny_8x8x64": ZooRecipe(task="transformer block", data=RandomInputs()),
}
"""By the name of the model's file without its suffix."""

TOPOLOGY: Final = ZooRecipe(task="topology, random weights", data=RandomInputs())
UNKNOWN: Final = ZooRecipe(task="not in the table", data=RandomInputs())

NAMED_TOPOLOGIES: Final = tuple(f"{ZOO_PREFIX}{name}" for name in SMALL_TOPOLOGIES)
"""Networks that need no folder."""
