"""The order of operations that needs the least memory. `least_peak_order` finds it."""

from driver.memory.order.op_graph import LiveBuffer, OpGraph
from driver.memory.order.peak_order import PeakOrder, least_peak_order
from driver.memory.order.sequence import least_peak_sequence

__all__ = ["LiveBuffer", "OpGraph", "PeakOrder", "least_peak_order", "least_peak_sequence"]
