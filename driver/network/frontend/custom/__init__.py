"""Operators of users: a script, its numpy, and the ONNX domain and name that they stand for."""
