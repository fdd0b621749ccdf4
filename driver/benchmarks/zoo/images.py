"""Images of files in colour, by Pillow, which only benchmarks need."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import DataError, SettingsError

_HINT: Final = "see that the folder of the zoo is complete, and the image a PNG of 8-bit RGB"


def read_image(path: Path) -> NDArray[np.uint8]:
    """The pixels [height, width, 3] of a PNG.

    Raises:
        DataError: the file cannot be read, is damaged, or is another kind of image.
        SettingsError: Pillow is not installed.
    """
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise SettingsError("images are read by Pillow", "pip install pillow") from None
    try:
        with Image.open(path, formats=["PNG"]) as image:
            if image.mode != "RGB":
                raise DataError(f"{path}: its pixels are {image.mode}, not RGB", _HINT)
            return np.asarray(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"cannot read {path}: {error}", _HINT) from None
