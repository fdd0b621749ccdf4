"""`tilefarm devices`: who is registered at a tracker, in and out of service, and who did what."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefarm.errors import NoDeviceError, SettingsError
from tilefarm.lease import DeviceInfo, label_words
from tilefarm.plural import plural
from tilefarm.printable import printable_words
from tilefarm.quiet import quiet_libraries
from tilefarm.sandbox import SandboxLevel
from tilefarm.target import built_in_targets
from tilefarm.trust.access import is_name
from tilefarm.trust.credentials import credentials
from tilefarm.watch.audit import AuditEntry, read_audit

from driver.commands.options.farm import add_tracker_options
from driver.report.terminal.elapsed import ago

if TYPE_CHECKING:
    from tilefarm.rpc.tracker_calls import DeviceState, RefusedRun

    from device_server.tracker.client import TrackerClient


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    add_tracker_options(parser)
    option = parser.add_argument
    option("--drain", metavar="NAME", help="no new leases for this device (role admin)")
    option("--why", default="", metavar="TEXT", help="with --drain: the reason that others see")
    option("--readmit", metavar="NAME", help="after a drain or a quarantine (role admin)")
    option("--refused", action="store_true", help="also the runs that devices refuse, and why")
    option("--audit", type=Path, metavar="FILE", help="print what a server's --audit has written")
    option("--json", action="store_true", help="one JSON document, with all that is known")
    parser.epilog = (
        "examples:\n"
        "  tilefarm devices --tracker 127.0.0.1:9190 --token-file farm.token\n"
        "  tilefarm devices ... --drain board1 --why 'new power supply'\n"
        "  tilefarm devices ... --refused\n"
        "  tilefarm devices --audit tracker.jsonl\n"
        "A device refuses runs that crashed it twice, until it is readmitted.\n"
        "exit codes: 3 no tracker answers, or no device has that name"
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    _require_one_thing(args)
    if args.audit is not None:
        return _print_audit(args.audit, as_json=args.json)
    quiet_libraries()
    from device_server.tracker.client import TrackerClient

    shown = credentials(args.token_file, args.tls)
    with TrackerClient(args.tracker, shown) as tracker:
        if args.drain is not None:
            tracker.drain(args.drain, args.why)
        if args.readmit is not None:
            tracker.readmit(args.readmit)
        if args.json:
            _print_document(tracker)
        else:
            _print_devices(tracker, refused=args.refused)
    return 0


def _require_one_thing(args: argparse.Namespace) -> None:
    """Nothing if the options that are given do something together."""
    if args.audit is not None:
        others = ("tracker", "token_file", "tls", "drain", "readmit", "refused", "why")
        for name in others:
            if getattr(args, name):
                raise SettingsError(
                    f"--audit prints a file and asks no tracker, so --{name.replace('_', '-')}"
                    " does nothing beside it",
                    "leave one of the two out",
                )
        return
    if args.why and args.drain is None:
        raise SettingsError("--why is the reason of a --drain", "add --drain NAME")
    for name in (args.drain, args.readmit):
        if name is not None and not is_name(name):
            raise SettingsError(
                f"{name!r} is no name of a device", "without either option, all are listed"
            )
    if args.drain is not None and args.drain == args.readmit:
        raise SettingsError(
            f"--drain takes {args.drain} out of service, --readmit puts it back",
            "leave one of the two out",
        )
    if args.tracker is None or args.token_file is None:
        raise SettingsError(
            "devices needs --tracker and --token-file, or --audit alone",
            "--tracker HOST:PORT --token-file FILE with those of your farm",
        )


def _print_document(tracker: TrackerClient) -> None:
    documents = [
        _document(asdict(state))
        | {"refused_runs": [asdict(run) for run in _refused_runs(tracker, state)]}
        for state in tracker.states()
    ]
    print(json.dumps(documents))


def _print_devices(tracker: TrackerClient, *, refused: bool) -> None:
    from driver.farm.leases import in_words

    states = printable_words(tracker.states())
    targets = {target.digest: name for name, target in built_in_targets().items()}
    for state in states:
        device = state.device
        target = targets.get(device.target, device.target.short)
        words = f"{device.name:12} {target:12} {device.address:22} {_sandbox(device)}"
        words += f" {label_words(device)}"
        refuses = f"; refuses {plural(state.refused, 'run')}" if state.refused else ""
        use = in_words(state) + refuses
        power = f"; {device.power}" if device.power else ""
        print(f"{words.rstrip()}\n{'':12} {use}; self-test {device.self_test}{power}")
        for run in _refused_runs(tracker, state) if refused else ():
            print(f"{'':12} {_in_words(run)}")
    if not states:
        print("no device is registered")
    elif refused and not any(state.refused for state in states):
        print("no device refuses a run")


def _sandbox(device: DeviceInfo) -> str:
    return f"sandbox={SandboxLevel.of(device.sandbox)} ({device.sandbox})"


def _refused_runs(tracker: TrackerClient, state: DeviceState) -> tuple[RefusedRun, ...]:
    if not state.refused:
        return ()
    try:
        return printable_words(tracker.refused_runs(state.device.name))
    except NoDeviceError:
        return ()  # it went away a moment ago


def _in_words(run: RefusedRun) -> str:
    since = ago(run.refused_seconds)
    return (
        f"{run.artifact.short} {run.entry}: {run.status} {run.crashes} times, refused for {since};"
        f" {run.why}"
    )


def _document(state: dict[str, Any]) -> dict[str, Any]:
    """A device's own fields beside those of its use."""
    device: dict[str, Any] = state.pop("device")
    return device | {"sandbox_level": SandboxLevel.of(device["sandbox"]).value} | state


def _print_audit(path: Path, *, as_json: bool) -> int:
    entries = read_audit(path)
    if as_json:
        print(json.dumps([asdict(entry) for entry in entries]))
        return 0
    for line in _lines(map(printable_words, entries)):
        print(line)
    return 0


def _lines(entries: Iterator[AuditEntry]) -> Iterator[str]:
    for e in entries:
        at = datetime.fromtimestamp(e.at_seconds, UTC)
        who = f"{e.user} ({e.roles})" if e.user else e.peer
        verdict = e.subject if e.allowed else f"REFUSED: {e.why}"
        yield f"{at:%Y-%m-%d %H:%M:%S} {who:24} {e.method:12} {verdict}".rstrip()
