"""What the user brings: ONNX files and arrays, checked at the door."""
