"""The history of a zoo: one file, which many may read while a night writes it."""
