"""The protocol, version 1: schemas and the code generated from them."""
