"""Whatever is wrong with a path that somebody gives: one line that names it, a remedy, code 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final, TypeAlias

import pytest

from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL

from .confined import Ended, rights_bind, run_confined

_LONG: Final = "a" * 300
_MODEL, _DATA = str(DEMO_MODEL), str(DEMO_CALIBRATION)
_TUNE: Final = ("tune", _MODEL, "--calibrate", _DATA, "--no-ray", "--trials", "1")
_FARM: Final = ("--tracker", "127.0.0.1:1")
_SERVED: Final = ("--name", "sim0", *_FARM, "--token-file", "token")
_ISSUE: Final = ("--role", "tracker", "--name", "hub", "--host", "127.0.0.1")

_READ: Final = ("locked/in/x", "file/x", "loop", _LONG)
"""Below a folder that may not be searched, below a file, a ring of links, longer than a name is."""
_WRITTEN: Final = (*_READ, "readonly/x")
_NO_LINK: Final = ("locked/in/x", "file/x", _LONG, "readonly/x")
"""Where a file takes the place of a link."""

_COMMANDS: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (("tune", "{}", "--calibrate", _DATA), _READ),
    (("tune", _MODEL, "--calibrate", "{}"), _READ),
    (("tune", _MODEL, "--calibrate", _DATA, "--evaluate", "{}"), _READ),
    ((*_TUNE, "--target", "{}.json"), _READ),
    ((*_TUNE, *_FARM, "--token-file", "{}"), _READ),
    ((*_TUNE, *_FARM, "--token-file", "token", "--tls", "{}"), _READ),
    ((*_TUNE, *_FARM, "--token-file", "token", "--signing-key", "{}"), _READ),
    ((*_TUNE, "--out", "{}"), (*_WRITTEN, "locked", "readonly", "file")),
    (("demo", "--no-ray", "--trials", "1", "--out", "{}"), _WRITTEN),
    (("show", "{}"), _READ),
    (("show", "--workload", "{}.json"), _READ),
    (("show", "zoo:digits", "--workload", "3", "--trace", "{}"), _READ),
    (("show", "zoo:digits", "--workload", "3", "--point", "{}"), _READ),
    (("show", "zoo:digits", "--workload", "3", "--best", "{}"), _READ),
    (("show", "zoo:digits", "--workload", "3", "--pass", "{}.py:f@nest"), _READ),
    (("show", "zoo:digits", "--workload", "3", "--html", "{}"), (*_WRITTEN, "locked", "absent/x")),
    (("explain", "zoo:digits", "--html", "{}"), _WRITTEN),
    (("explain", "{}"), _READ),
    (("check", "zoo:digits", "--data", "{}"), _READ),
    (("check", "zoo:digits", "--out", "{}"), _READ),
    (("replay", "--out", "{}"), _READ),
    (("replay", "12ab", "--out", "{}"), _READ),
    (("run", "{}", "--input", _DATA), _READ),
    (("tracker", "--token-file", "{}"), _WRITTEN),
    (("tracker", "--tokens", "{}"), _READ),
    (("tracker", "--token-file", "token", "--tls", "{}"), _READ),
    (("tracker", "--token-file", "token", "--audit", "{}"), _WRITTEN),
    (("tracker", "--token-file", "token", "--state", "{}"), _WRITTEN),
    (("device", *_SERVED, "--hooks", "{}"), _READ),
    (("device", *_SERVED, "--folder", "{}"), _WRITTEN),
    (("device", *_SERVED, "--runtime", "{}"), _READ),
    (("device", *_SERVED, "--signing-key", "{}"), _READ),
    (("device", *_SERVED, "--target", "{}.json"), _READ),
    (("device", *_SERVED, "--audit", "{}"), _WRITTEN),
    (("device", "--self-test", "--runtime", "{}"), _READ),
    (("devices", *_FARM, "--token-file", "{}"), _READ),
    (("devices", "--audit", "{}"), _READ),
    (("doctor", *_FARM, "--token-file", "{}"), _READ),
    (("top", "--once", *_FARM, "--token-file", "{}"), _READ),
    (("submit", "{}", "--cluster", "127.0.0.1:1"), _READ),
    (("jobs", "--cluster", "127.0.0.1:1", "--cluster-token", "{}"), _READ),
    (("fetch", "job-1", "--cluster", "127.0.0.1:1", "--out", "{}"), ("locked/in/x", _LONG)),
    (("pki", "init", "{}"), _WRITTEN),
    (("pki", "issue", "{}", *_ISSUE, "--out", "hub"), _READ),
    (("pki", "rotate", "--authority", "{}", "hub"), _READ),
    (("pki", "show", "{}"), _READ),
    (("pki", "token", "--tokens", "{}", "--role", "submit", "--user", "a", "--out", "t"), _NO_LINK),
    (("pki", "token", "--tokens", "t", "--role", "submit", "--user", "a", "--out", "{}"), _WRITTEN),
    (("pki", "key", "--out", "{}"), _WRITTEN),
    (("targets", "--show", "{}.json"), _READ),
    (("vta", "check", "{}"), _READ),
    (("vta", "show", "{}"), _READ),
    (("vta", "run", "{}"), _READ),
    (("vta", "dump", "--conv", "16,16,4,4,1,1,0", "--out", "{}"), _WRITTEN),
    (("conformance", "--cases", "{}"), _READ),
    (("bench", "zoo", "--data", "{}"), _READ),
    (("bench", "compare", "{}", "{}"), _READ),
    (("bench", "kernels", "--old", "{}"), _READ),
)

_Line: TypeAlias = tuple[str, ...]
_Ends: TypeAlias = Callable[[tuple[_Line, ...]], Mapping[_Line, Ended]]


def _lines(of: slice) -> tuple[_Line, ...]:
    """Every command with some of its paths."""
    return tuple(
        tuple(word.replace("{}", path) for word in words)
        for words, paths in _COMMANDS
        for path in paths[of]
    )


_FIRST: Final = _lines(slice(1))
_OTHERS: Final = _lines(slice(1, None))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Ends]:
    """How command lines end, all in one process."""
    folder = tmp_path_factory.mktemp("paths")
    if not rights_bind(folder):
        pytest.skip("nothing keeps this user out of any folder")
    (folder / "locked").mkdir(mode=0o000)
    (folder / "readonly").mkdir(mode=0o500)
    (folder / "file").write_text("not what is wanted\n")
    for name in ("loop", "loop.json", "loop.py"):
        (folder / name).symlink_to(f"other-{name}")
        (folder / f"other-{name}").symlink_to(name)
    (folder / "token").write_text("0123456789abcdef0123456789abcdef\n")
    (folder / "token").chmod(0o600)
    yield cache(lambda lines: dict(zip(lines, run_confined(lines, folder), strict=True)))
    (folder / "locked").chmod(0o700)
    (folder / "readonly").chmod(0o700)


def _id(line: _Line) -> str:
    return " ".join(line).replace(_LONG, "LONG")


@pytest.mark.parametrize("line", _FIRST, ids=_id)
def test_it_is_one_line_and_a_remedy(line: _Line, ended: _Ends) -> None:
    _check(line, ended(_FIRST)[line])


@pytest.mark.slow
@pytest.mark.parametrize("line", _OTHERS, ids=_id)
def test_so_it_is_with_every_path(line: _Line, ended: _Ends) -> None:
    _check(line, ended(_OTHERS)[line])


def _check(line: _Line, got: Ended) -> None:
    assert got.crashed == ""
    assert got.code in (2, 3), got
    said = [each for each in got.err.splitlines() if not each.startswith("at=")]  # no log
    what, remedy, *more = said
    assert what.startswith(f"tilefarm {line[0]}")
    assert remedy.startswith("  try: ")
    assert more == []
    assert "[Errno" not in what
    assert "internal error" not in what
