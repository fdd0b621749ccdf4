"""Networks made here, by names that stand where the path of a model could: `zoo:`, `op:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from tilefarm.errors import SettingsError
from tilefarm.system_errors import unwritable

from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.examples.operators import (
    OPERATOR_PREFIX,
    operators_in,
    operators_title,
    write_operators,
)
from driver.network.examples.topologies import TOPOLOGIES, random_images, write_topology

ZOO_PREFIX: Final = "zoo:"
ZOO_DIGITS: Final = "digits"
_SAMPLES: Final = 4

ZOO_CAPTIONS: Final[Mapping[str, str]] = {
    ZOO_DIGITS: "the digit classifier of `tilefarm demo`, trained",
    "resnet18": "ResNet-18 at 224x224, random weights",
    "mobilenet_v1": "MobileNet v1 at 224x224, random weights",
    "mobilenet_v2": "MobileNet v2 at 224x224, random weights",
    "squeezenet": "SqueezeNet 1.1 at 224x224, random weights",
    "resnet50": "ResNet-50 at 224x224, random weights",
    "densenet121": "DenseNet-121 at 224x224, random weights",
    "inception_v1": "Inception v1 (GoogLeNet) at 224x224, random weights",
    "vgg19": "VGG-19 at 224x224, random weights (575 MB)",
}
"""What `zoo:NAME` is, by name."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A network's file and its calibration data, which decide the int8 scales, if there are any."""

    model: Path
    calibration: Path | None


def is_built_in(model: Path | str) -> bool:
    """Whether a name means a network that is made here, known or not."""
    return str(model).startswith((ZOO_PREFIX, OPERATOR_PREFIX))


def short_name(model: Path | str) -> str:
    """A model's name for folders: resnet18 for `zoo:resnet18` and for `nets/resnet18.onnx`.

    Raises:
        SettingsError: it should be operators in words, and is not.
    """
    text = str(model)
    if text.startswith(OPERATOR_PREFIX):
        return operators_title(operators_in(text.removeprefix(OPERATOR_PREFIX)))
    return text.removeprefix(ZOO_PREFIX) if is_built_in(model) else Path(model).stem


def model_files(model: Path | str, calibration: Path | None, folder: Path) -> ModelFiles:
    """The files of a network: as given, or those of `zoo:NAME` or `op:TEXT`.

    Args:
        calibration: used whatever the model is; networks that are made here have some.
        folder: gets the files of a network that is made by code.

    Raises:
        SettingsError: there is no network of that name, or no such operator.
        OutputError: the folder cannot be written.
    """
    if is_built_in(model):
        files = _built_in(model, folder)
        return files if calibration is None else ModelFiles(files.model, calibration)
    return ModelFiles(Path(model), calibration)


def _built_in(model: Path | str, folder: Path) -> ModelFiles:
    name, text = short_name(model), str(model)
    is_topology = not text.startswith(OPERATOR_PREFIX)
    if is_topology and name not in ZOO_CAPTIONS:
        raise SettingsError(f"{model}: no such network", f"one of {', '.join(zoo_names())}")
    if is_topology and name not in TOPOLOGIES:
        return ModelFiles(DEMO_MODEL, DEMO_CALIBRATION)
    files = model, data = folder / f"{name}.onnx", folder / f"{name}.npz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if is_topology:
            write_topology(name, model)
            np.savez(data, x=random_images(_SAMPLES))
        else:
            write_operators(operators_in(text.removeprefix(OPERATOR_PREFIX)), model, data)
    except OSError as error:
        raise unwritable(folder, error) from None
    return ModelFiles(*files)


def zoo_names() -> list[str]:
    """Every name that is built in."""
    return [f"{ZOO_PREFIX}{name}" for name in ZOO_CAPTIONS]
