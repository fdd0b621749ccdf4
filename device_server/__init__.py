"""Sits next to a board: leases it, loads kernels in a sandboxed child, measures them."""
