"""Offsets for buffers whose lifetimes are given: fast where it is easy, exact where it is tight."""

from driver.memory.allocate.allocator import NODES, allocate
from driver.memory.allocate.interval import Allocation, Interval, Unallocated, flaw

__all__ = ["NODES", "Allocation", "Interval", "Unallocated", "allocate", "flaw"]
