"""Making certificates void before their time: those that an authority issued to somebody."""

from __future__ import annotations

from pathlib import Path

from tilefarm.errors import SettingsError
from tilefarm.trust.revoked import RevokedCertificate, read_revoked, revoked_text

from driver.atomic_write import write_atomically
from driver.farm.authority import Authority


def revoke_certificates(authority: Path, revoked: Path, name: str, *, now_seconds: float) -> int:
    """Add all certificates of a user or a device to a file of revoked ones; how many are new in it.

    Args:
        authority: the folder of who issued them.
        revoked: the file, made if it is not there.
        name: the holder's, in whatever roles.
        now_seconds: wall seconds.

    Raises:
        SettingsError: the authority is not there, the file is another, or nothing is to be revoked.
        OutputError: the file cannot be written.
    """
    known = read_revoked(revoked) if revoked.exists() else ()
    void = {row.serial for row in known}
    fresh = tuple(
        RevokedCertificate(serial=serial, holder=holder.uri, at_seconds=now_seconds)
        for serial, holder in Authority(authority).issued().items()
        if holder.name == name and serial not in void
    )
    if not fresh:
        raise SettingsError(
            f"{authority}: it issued no certificate to {name} that is not revoked",
            "names are those of `tilefarm pki issue --name`",
        )
    write_atomically(revoked, revoked_text((*known, *fresh)).encode())
    return len(fresh)
