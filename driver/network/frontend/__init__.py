"""What the user brings: ONNX files and arrays, checked at the door."""

from driver.network.frontend.data import Dataset, load_data
from driver.network.frontend.onnx import import_model

__all__ = ["Dataset", "import_model", "load_data"]
