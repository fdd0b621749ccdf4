"""The example that ships with tilefarm: a small digit classifier with its data."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
DEMO_MODEL: Final = FOLDER / "digits.onnx"
DEMO_CALIBRATION: Final = FOLDER / "calibrate.npz"
DEMO_TEST: Final = FOLDER / "test.npz"
