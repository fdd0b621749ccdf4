"""`tilefarm pki`: certificates and tokens of a farm that is more than one machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tilefarm.clock import SystemClock
from tilefarm.errors import SettingsError
from tilefarm.plural import form, plural
from tilefarm.printable import printable
from tilefarm.trust.access import CALLING_ROLES, CertificateName, FarmRole, is_name
from tilefarm.trust.tokens import read_table

_DAY_SECONDS: Final = 86400.0
_LOOPBACK: Final = ("127.0.0.1", "localhost")
_EPILOG: Final = """\
A farm on one machine needs none of this. For one that is more:

  tilefarm pki init farm-ca
  tilefarm pki issue farm-ca --role tracker --name hub --host 10.0.0.1 --out hub
  tilefarm pki issue farm-ca --role device --name board1 --host 10.0.0.2 --out board1
  tilefarm pki issue farm-ca --role submit --name ann --out ann
  tilefarm pki token --tokens tokens.json --role device --user board1 --out board1/token
  tilefarm pki token --tokens tokens.json --role submit --user ann --out ann/token

Copy each folder to its owner, tokens.json (it holds hashes) to the hosts of tracker and devices:

  tilefarm tracker --listen 10.0.0.1:9190 --tls hub --tokens tokens.json
  tilefarm device --name board1 --listen 10.0.0.2:9191 --tracker 10.0.0.1:9190 --tls board1 \\
      --token-file board1/token --tokens tokens.json
  tilefarm tune net.onnx --tracker 10.0.0.1:9190 --tls ann --token-file ann/token ...

Servers read certificates and tokens again when they change. The authority's folder stays where it
is. Somebody whose folder was stolen loses tokens and certificates at once, wherever servers have
--revoked revoked.json; what is issued afterwards is good:

  tilefarm pki revoke --user ann --tokens tokens.json --authority farm-ca --revoked revoked.json

 roles: read sees devices; submit runs kernels; device registers one; admin takes them out of
service; tracker answers.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions with their options."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    init = actions.add_parser("init", help="make the farm's certificate authority")
    init.add_argument("authority", type=Path, metavar="DIR")

    issue = actions.add_parser("issue", help="make a folder with a certificate for one party")
    issue.add_argument("authority", type=Path, metavar="DIR")
    issue.add_argument("--role", required=True, choices=[role.value for role in FarmRole])
    issue.add_argument("--name", required=True, help="of the user or the device")
    issue.add_argument(
        "--host",
        action="append",
        metavar="NAME|ADDRESS",
        help="a server is called by; several times for several (default: this machine's loopback)",
    )
    issue.add_argument("--days", type=float, default=90.0, metavar="N", help="(default: 90)")
    issue.add_argument("--out", type=Path, required=True, metavar="DIR")

    rotate = actions.add_parser("rotate", help="renew the certificates of folders, with new keys")
    rotate.add_argument("authority", type=Path, metavar="DIR")
    rotate.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    rotate.add_argument("--days", type=float, default=90.0, metavar="N", help="(default: 90)")

    show = actions.add_parser("show", help="say what folders and tables of tokens hold")
    show.add_argument("paths", type=Path, nargs="+", metavar="FOLDER|TOKENS.json")
    show.add_argument("--json", action="store_true", help="one JSON document")

    token = actions.add_parser("token", help="make a token with a role, its hash in a table")
    token.add_argument("--tokens", type=Path, required=True, metavar="FILE", help="the table")
    token.add_argument(
        "--role", required=True, choices=[r.value for r in FarmRole if r in CALLING_ROLES]
    )
    token.add_argument("--user", required=True, metavar="NAME")
    token.add_argument("--days", type=float, metavar="N", help="(default: for ever)")
    token.add_argument("--out", type=Path, required=True, metavar="FILE", help="gets the token")

    key = actions.add_parser("key", help="make the keys that sign and verify the farm's artifacts")
    key.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="gets one, FILE.pub the other"
    )

    revoke = actions.add_parser(
        "revoke", help="make somebody's tokens, certificates, or both void before their time"
    )
    revoke.add_argument("--user", required=True, metavar="NAME", help="a user or a device")
    revoke.add_argument("--tokens", type=Path, metavar="FILE", help="the table to take tokens from")
    revoke.add_argument(
        "--authority", type=Path, metavar="DIR", help="that issued the certificates to revoke"
    )
    revoke.add_argument(
        "--revoked", type=Path, metavar="FILE", help="gets them; servers read it with --revoked"
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    return _ACTIONS[args.action](args)


def _init(args: argparse.Namespace) -> int:
    from driver.farm.authority import AUTHORITY_KEY, Authority

    Authority(args.authority).create(now_seconds=SystemClock().wall_seconds())
    print(f"{args.authority}: an authority; keep {AUTHORITY_KEY} there")
    return 0


def _issue(args: argparse.Namespace) -> int:
    from driver.farm.authority import Authority

    holder = CertificateName(role=FarmRole(args.role), name=_named("--name", args.name))
    Authority(args.authority).issue(
        holder,
        args.host or (_LOOPBACK if holder.role in (FarmRole.TRACKER, FarmRole.DEVICE) else ()),
        args.out,
        now_seconds=SystemClock().wall_seconds(),
        days=_positive(args.days),
    )
    return _print_all([args.out])


def _rotate(args: argparse.Namespace) -> int:
    from driver.farm.authority import Authority, certificate_in

    for folder in args.folders:
        old = certificate_in(folder)
        Authority(args.authority).issue(
            old.holder,
            old.hosts,
            folder,
            now_seconds=SystemClock().wall_seconds(),
            days=_positive(args.days),
        )
    return _print_all(args.folders)


def _show(args: argparse.Namespace) -> int:
    if not args.json:
        return _print_all(args.paths)
    print(json.dumps([row for path in args.paths for row in _rows(path)]))
    return 0


def _token(args: argparse.Namespace) -> int:
    from driver.farm.token import grant

    now = SystemClock().wall_seconds()
    expires_at = None if args.days is None else now + _positive(args.days) * _DAY_SECONDS
    user = _named("--user", args.user)
    grant(args.tokens, args.out, user=user, role=FarmRole(args.role), expires_at=expires_at)
    print(f"{args.out}: a token of {user} ({args.role}); its hash is in {args.tokens}")
    return 0


def _key(args: argparse.Namespace) -> int:
    from driver.farm.signing import create_key_pair

    public = args.out.with_name(f"{args.out.name}.pub")
    create_key_pair(args.out, public)
    print(f"{args.out}: for --signing-key of everybody who submits")
    print(f"{public}: for --signing-key of every device; it signs nothing")
    return 0


def _revoke(args: argparse.Namespace) -> int:
    if (args.authority is None) != (args.revoked is None):
        raise SettingsError(
            "certificates are revoked with --authority and --revoked together",
            "--authority DIR that issued them, --revoked FILE that servers read",
        )
    if args.tokens is None and args.revoked is None:
        raise SettingsError(
            "neither tokens nor certificates are named",
            "--tokens FILE, or --authority DIR --revoked FILE, or all three",
        )
    if args.tokens is not None:
        from driver.farm.token import revoke

        count = revoke(args.tokens, args.user)
        if not count:
            raise SettingsError(
                f"{args.tokens}: no token of {args.user}", f"`tilefarm pki show {args.tokens}`"
            )
        tokens = plural(count, "token")
        print(f"{args.tokens}: {tokens} of {args.user} {form(count, 'is', 'are')} void")
    if args.revoked is not None:
        from driver.farm.revoking import revoke_certificates

        count = revoke_certificates(
            args.authority, args.revoked, args.user, now_seconds=SystemClock().wall_seconds()
        )
        certificates = plural(count, "certificate")
        print(f"{args.revoked}: {certificates} of {args.user} {form(count, 'is', 'are')} void")
    return 0


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "init": _init,
    "issue": _issue,
    "rotate": _rotate,
    "show": _show,
    "token": _token,
    "key": _key,
    "revoke": _revoke,
}


def _print_all(paths: list[Path]) -> int:
    for path in paths:
        for row in _rows(path):
            print(printable(_line(row)))
    return 0


def _rows(path: Path) -> list[dict[str, Any]]:
    """What a party's folder, or each row of a table of tokens, says."""
    if not path.is_dir():
        return [
            {"path": str(path), "name": e.user, "role": e.role.value, "until": e.expires_at}
            for e in read_table(path)
        ]
    from driver.farm.authority import certificate_in

    found = certificate_in(path)
    return [
        {
            "path": str(path),
            "name": found.holder.name,
            "role": found.holder.role.value,
            "hosts": list(found.hosts),
            "until": found.not_after,
        }
    ]


def _line(row: dict[str, Any]) -> str:
    until, hosts = row["until"], row.get("hosts")
    words = "for ever"
    if until is not None:
        days = (until - SystemClock().wall_seconds()) / _DAY_SECONDS
        date = f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"
        words = f"until {date}, {days:.1f} days" if days > 0 else f"EXPIRED on {date}"
    served = f" for {', '.join(hosts)}" if hosts else ""
    return f"{row['path']}: {row['name']} ({row['role']}){served}, {words}"


def _named(option: str, name: str) -> str:
    if not is_name(name):
        raise SettingsError(
            f"{option} {name!r}: not a name", "letters, digits and . _ -, at most 64 of them"
        )
    return name


def _positive(days: float) -> float:
    if not 0 < days <= 36500:
        raise SettingsError(f"--days {days:g}: not a time to live", "--days 90")
    return days
