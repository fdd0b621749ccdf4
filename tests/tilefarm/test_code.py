"""The digest of our code: the same for the same sources, wherever they lie."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tilefarm.code import PACKAGES, code_digest, code_folder


def test_every_package_counts() -> None:
    assert len({code_digest(package) for package in PACKAGES}) == len(PACKAGES)
    assert code_digest() == code_digest(*reversed(PACKAGES))


def test_a_changed_line_is_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "copied_tuner"
    shutil.copytree(code_folder("tuner"), copy)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "copied_tuner", raising=False)
    before = code_digest("copied_tuner")
    (copy / "__pycache__").mkdir(exist_ok=True)
    (copy / "__pycache__/x.pyc").write_bytes(b"")
    assert code_digest("copied_tuner") == before
    with (copy / "__init__.py").open("a") as file:
        file.write("# one more\n")
    assert code_digest("copied_tuner") != before


def test_a_package_that_is_not_here_is_an_error() -> None:
    with pytest.raises(ImportError):
        code_digest("no_such_package_of_ours")
