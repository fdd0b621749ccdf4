"""VTA programs as files: instructions in bits, in records, in text, and back."""
