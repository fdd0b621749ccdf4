"""The golden fixture itself: golden texts are what most tests of IR rest on."""

from pathlib import Path

import pytest
from kit.golden import ROOT, Golden

FOLDER = ROOT / "golden" / "compile_worker" / "ir" / "test_golden_kit"


def test_a_missing_text_says_what_writes_it() -> None:
    golden = Golden(FOLDER, "never", update=False)
    with pytest.raises(pytest.fail.Exception) as caught:
        golden("text")
    assert "no golden text tests/golden/compile_worker/ir/test_golden_kit/never.txt" in str(
        caught.value
    )
    assert "pytest tests/compile_worker/ir/test_golden_kit.py --update-golden" in str(caught.value)


def test_updating_writes_and_comparing_reads(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    Golden(folder, "test", update=True)("one\ntwo", "part")
    assert (folder / "test-part.txt").read_text() == "one\ntwo\n"
    Golden(folder, "test", update=False)("one\ntwo\n", "part")


def test_digests_of_workloads_are_no_part_of_a_text(tmp_path: Path) -> None:
    Golden(tmp_path, "test", update=True)("def dense_1x3_2co_efaf0c(x):")
    assert (tmp_path / "test.txt").read_text() == "def dense_1x3_2co_DIGEST(x):\n"
    Golden(tmp_path, "test", update=False)("def dense_1x3_2co_06c78c(x):")


def test_a_different_text_fails() -> None:
    golden = Golden(FOLDER.with_name("test_text"), "test_text_of_every_statement", update=False)
    with pytest.raises(AssertionError, match="--update-golden"):
        golden("something else")


def test_the_fixture_names_file_and_test(golden: Golden) -> None:
    assert golden.folder == FOLDER
    assert golden.test == "test_the_fixture_names_file_and_test"
