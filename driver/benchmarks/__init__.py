"""The benchmarks of `tilefarm bench`: one file each; its caption says what it measures.

A benchmark is a module with `add_arguments` and `run`, as `driver.commands.Command` has them;
`--json` is there already. To add one: a file here, and a row in `driver/commands/bench.py`. This
room is a part of the source tree, not of the wheel.
"""
