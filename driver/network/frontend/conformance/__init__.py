"""ONNX's own test cases through the importer."""
