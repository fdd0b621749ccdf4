"""The mode `feasible`: the list scheduler of Intel's npu_compiler, step for step."""
