"""What the user brings: ONNX files and arrays, checked at the door."""

from driver.frontend.data import Dataset, load_data
from driver.frontend.onnx import import_model

__all__ = ["Dataset", "import_model", "load_data"]
