"""Files of MiniMalloc: what is read, what is written, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from tilefarm.errors import DataError

from driver.memory.allocate import Interval
from driver.memory.minimalloc_csv import NamedInterval, minimalloc_text, read_minimalloc

PLAIN = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n"


def read(folder: Path, text: str) -> tuple[NamedInterval, ...]:
    path = folder / "some.csv"
    path.write_text(text)
    return read_minimalloc(path)


def test_a_plain_file_there_and_back(tmp_path: Path) -> None:
    rows = read(tmp_path, PLAIN)
    assert [row.name for row in rows] == ["b1", "b2"]
    assert rows[1].interval == Interval(lower=3, upper=9, nbytes=4)
    assert minimalloc_text(rows) == PLAIN
    assert minimalloc_text(rows, [0, 4]).splitlines()[1:] == ["b1,0,3,4,0", "b2,3,9,4,4"]


def test_all_columns_there_and_back(tmp_path: Path) -> None:
    text = "id,lower,upper,size,alignment,gaps,offset\na,0,9,4,2,3-5 7-8,\nb,1,2,8,4,,12\n"
    rows = read(tmp_path, text)
    assert rows[0].interval.lifetimes == ((0, 3), (5, 7), (8, 9))
    assert (rows[0].interval.fixed_offset, rows[1].interval.fixed_offset) == (None, 12)
    assert minimalloc_text(rows) == text


def test_what_a_spreadsheet_puts_around_is_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "saved.csv"
    path.write_bytes(b'\xef\xbb\xbf"id","lower","upper","size"\r\n"a, b","0","3","4"\r\n')
    (row,) = read_minimalloc(path)
    assert row == NamedInterval("a, b", Interval(lower=0, upper=3, nbytes=4))
    assert read(tmp_path, minimalloc_text([row])) == (row,)


def test_a_field_without_end_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"some\.csv:2: field larger than"):
        read(tmp_path, PLAIN.replace("b1", "b" * 200_000))


def test_old_names_include_the_end(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "size,buffer_id,start,end,hint,gaps\n4,x,0,8,7,2-3\n")
    assert row == NamedInterval("x", Interval(lower=0, upper=2, nbytes=4, later=((4, 9),)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "some.csv:1: no header"),
        ("id,lower,upper\n", "some.csv:1: there is no column 'size'"),
        ("id,lower,upper,size,colour\n", "some.csv:1: no column is called 'colour'"),
        ("id,lower,start,upper,size\n", "some.csv:1: two columns say 'lower'"),
        (PLAIN + "b3,1,2\n", "some.csv:4: 3 fields instead of 4"),
        (PLAIN + "b3,1,2,x\n", "some.csv:4: size is 'x', not a number"),
        (PLAIN + "b3,1,2,1_0\n", "some.csv:4: size is '1_0', not a number"),
        (PLAIN + "b3,2,2,1\n", "some.csv:4: it lives from 2 to 2"),
        (PLAIN + "b1,1,2,1\n", "some.csv:4: a second buffer 'b1'"),
        (PLAIN + "b3,1,2," + "9" * 5000 + "\n", "some.csv:4: size is '9999"),
        ("id,lower,upper,size,gaps\na,0,9,4,3\n", "some.csv:2: '3' is no gap"),
        ("id,lower,upper,size,gaps\na,0,9,4,3-12\n", "some.csv:2: the gap 3-12 is not in"),
        ("id,lower,upper,size,gaps\na,0,9,4,0-9\n", "some.csv:2: its gaps leave no lifetime"),
        ("id,lower,upper,size,alignment\na,0,9,4,0\n", "some.csv:2: an alignment of 0"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(DataError) as refused:
        read(tmp_path, text)
    assert why in refused.value.what
    assert "\n" not in refused.value.what


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"some\.csv"):
        read_minimalloc(path)
    with pytest.raises(DataError, match=r"missing\.csv"):
        read_minimalloc(tmp_path / "missing.csv")


def test_a_long_file_is_read_in_seconds(tmp_path: Path) -> None:
    lines = (f"{number},{number},{number + 9},1024\n" for number in range(100_000))
    began = process_time()
    assert len(read(tmp_path, "id,lower,upper,size\n" + "".join(lines))) == 100_000
    assert process_time() - began < 5
