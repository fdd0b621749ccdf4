"""A model as the files that it is made of: its own, and those beside it that hold its weights."""

from __future__ import annotations

from pathlib import Path

from tilefarm.digest import Digest
from tilefarm.errors import ModelError

from driver.network.frontend.external_data import ExternalDataError, file_beside, location_of
from driver.network.frontend.file import read_model
from driver.network.frontend.lazy_weights import HERE


def files_beside(path: Path) -> dict[str, Path]:
    """The files with weights of a model, by the names that it has for them.

    Raises:
        ModelError: the model cannot be read, or such a file is not in its folder.
    """
    named = {location_of(tensor) for tensor in read_model(path).graph.initializer}
    try:
        return {
            location: file_beside(location, path.parent)
            for location in sorted(filter(None, named - {HERE}))
        }
    except ExternalDataError as reason:
        raise ModelError(f"{path}: {reason}", reason.remedy) from None


def model_digest(path: Path) -> Digest:
    """Of the model's file; of its weights as well, where these are in files beside it.

    Raises:
        ModelError: as `files_beside`, or a file cannot be read.
    """
    own = _digest_of(path)
    beside = {location: _digest_of(file).hex for location, file in files_beside(path).items()}
    return Digest.of_json([own.hex, beside]) if beside else own


def _digest_of(path: Path) -> Digest:
    try:
        return Digest.of_file(path)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}", "give an .onnx file") from None
