"""The network between its file and its kernels: fold, quantize, refer, partition."""

from driver.graph.calibrate import calibrate
from driver.graph.float_run import run_float
from driver.graph.fold import fold
from driver.graph.ir import Graph
from driver.graph.network import Network, NetworkOutput, NetworkStep, NetworkTensor
from driver.graph.partition import partition
from driver.graph.qir import QuantGraph
from driver.graph.quantize import quantize
from driver.graph.reference import run, run_network, run_workload
from driver.graph.samples import sample_inputs

__all__ = [
    "Graph",
    "Network",
    "NetworkOutput",
    "NetworkStep",
    "NetworkTensor",
    "QuantGraph",
    "calibrate",
    "fold",
    "partition",
    "quantize",
    "run",
    "run_float",
    "run_network",
    "run_workload",
    "sample_inputs",
]
