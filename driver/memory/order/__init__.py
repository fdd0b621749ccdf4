"""The order of operations that needs the least memory. Its door: `least_peak_order`."""

from driver.memory.order.op_graph import LiveBuffer, OpGraph
from driver.memory.order.peak_order import PeakOrder, least_peak_order

__all__ = ["LiveBuffer", "OpGraph", "PeakOrder", "least_peak_order"]
