"""Turns a workload and a trace into a shared object: IR, schedules, passes, LLVM."""
