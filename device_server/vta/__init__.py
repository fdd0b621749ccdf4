"""VTA: its runtime and simulator in C++, the library in Python, programs as files."""
