"""The sandboxed child that runs kernels, and what its deaths mean."""
