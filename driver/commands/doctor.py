"""`tilefarm doctor`: what is missing on this machine, and the command that repairs it."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.epilog = (
        "example:\n  tilefarm doctor\nThe exit code is 0 when nothing is missing, 2 otherwise."
    )


def run(args: argparse.Namespace) -> int:  # noqa: ARG001
    """Do it; the exit code."""
    from driver.doctor import examine

    findings = examine()
    for finding in findings:
        print(f"{'ok  ' if finding.good else 'BAD '} {finding.subject:12} {finding.detail}")
        if not finding.good:
            print(f"       try: {finding.repair}")
    return 0 if all(finding.good for finding in findings) else 2
