"""The built VTA library in this process."""
