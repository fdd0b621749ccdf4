"""Rules of ONNX's operators: what each is in the float graph."""
