"""Features of kernels of the processor, counted by hand."""

from kit.kernels.nests import EXAMPLES, SIM

from compile_worker.lowering import lower
from compile_worker.machines.cpu.features import features_of
from compile_worker.te import nest_of


def test_a_cpu_kernel_counts_what_it_writes() -> None:
    found = features_of(lower(nest_of(EXAMPLES["add"], SIM), SIM), SIM)
    (out,) = EXAMPLES["add"].outputs
    assert found == {"stores": out.nbytes, "param_nbytes": 3 * out.nbytes}
