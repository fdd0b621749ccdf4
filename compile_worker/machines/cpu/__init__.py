"""The processor: its lowering, and what is counted of its kernels."""
