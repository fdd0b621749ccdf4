"""The example that ships with tilefarm: a small digit classifier with its data."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
MODEL: Final = FOLDER / "digits.onnx"
CALIBRATION: Final = FOLDER / "calibrate.npz"
TEST: Final = FOLDER / "test.npz"
