"""The whole network as one program: assembled, written, read back and run."""
