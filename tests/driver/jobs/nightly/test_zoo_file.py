"""The file of a zoo: what it says, and that a fault is a line with its place and costs its rows."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import DataError

from driver.commands import tune
from driver.jobs.nightly.records import Row
from driver.jobs.nightly.zoo_file import Zoo, read_zoo
from driver.jobs.nightly.zoo_options import MODEL_OPTIONS, TARGET_OPTIONS, OptionKind, words_of

GOOD = """
name = "ours"
[night]
seconds = 3600
rows = 2
[search]
trials = 8
[gate]
cycles = 1.5
[[target]]
name = "board"
target = "boards/ours.json"
tracker = "farm:9190"
token-file = "farm.token"
label = {room = "1", rack = "b"}
[[target]]
name = "cpu"
target = "cpu"
threads = 2
[[model]]
name = "digits"
file = "zoo:digits"
targets = ["cpu"]
[[model]]
name = "ours"
file = "nets/ours.onnx"
calibrate = "data.npz"
keep-float = ["first", "last*"]
equalize = false
shape = {batch = "1"}
max-loss = 0.5
score = 71.5
search = {trials = 64}
"""


def zoo_of(tmp_path: Path, text: str) -> Zoo:
    path = tmp_path / "zoo.toml"
    path.write_text(text, encoding="utf-8")
    return read_zoo(path)


def test_what_it_says(tmp_path: Path) -> None:
    zoo = zoo_of(tmp_path, GOOD)
    assert (zoo.name, zoo.night.seconds, zoo.night.rows, zoo.faults) == ("ours", 3600, 2, ())
    rows = {row.row: row for row in zoo.rows}
    assert list(rows) == [Row("digits", "cpu"), Row("ours", "board"), Row("ours", "cpu")]
    digits = rows[Row("digits", "cpu")]
    assert (digits.model, digits.files, digits.search.trials) == ("zoo:digits", (), 8)
    assert digits.words == ("--target", "cpu", "--threads", "2")
    ours = rows[Row("ours", "board")]
    assert ours.model == str(tmp_path / "nets/ours.onnx")
    assert ours.search.trials == 64
    assert (ours.gates.cycles, ours.gates.least_score) == (0.015, 71.5)
    assert " ".join(ours.words) == (
        "--keep-float first,last* --no-equalize --shape batch=1 --max-loss 0.5"
        f" --target {tmp_path}/boards/ours.json --tracker farm:9190"
        f" --token-file {tmp_path}/farm.token --label room=1 --label rack=b"
        f" --calibrate {tmp_path}/data.npz"
    )


def test_settings_are_what_the_file_says_whatever_its_order_and_folder(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    one, *_ = zoo_of(tmp_path, GOOD).rows[1:]
    lines = 'equalize = false\nkeep-float = ["first", "last*"]'
    other, *_ = zoo_of(
        tmp_path / "b",
        GOOD.replace('keep-float = ["first", "last*"]\nequalize = false', lines)
        .replace("threads = 2", "threads = 3")
        .replace("trials = 64", "trials = 65"),
    ).rows[1:]
    assert one.words != other.words
    assert one.settings == other.settings
    changed, *_ = zoo_of(tmp_path, GOOD.replace("equalize = false", "equalize = true")).rows[1:]
    assert changed.settings != one.settings


def test_every_option_is_one_of_tune() -> None:
    parser = argparse.ArgumentParser()
    tune.add_arguments(parser)
    known = set(re.findall(r"--[a-z-]+", parser.format_help()))
    for options in (MODEL_OPTIONS, TARGET_OPTIONS):
        for name, kind in options.items():
            assert f"--{name}" in known, name
            assert kind is not OptionKind.EITHER or f"--no-{name}" in known, name


def test_words_are_those_that_tune_takes(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    tune.add_arguments(parser)
    for row in zoo_of(tmp_path, GOOD).rows:
        assert parser.parse_args([row.model, *row.words]).target


FAULTY_ROWS = {
    "unknown key": ('fiel="x"', "fiel: no such key; file?"),
    "no file": ('file=""', "no file"),
    "no target": ('targets=["b"]', "no target is named 'b'"),
    "score": ("score=101", "score = 101: not a number from"),
    "flag": ('equalize="yes"', "not true or false"),
    "digest": ('sha256="xyz"', "not 64 hexadecimal digits"),
    "digests": (f'sha256={{calibrate="{"0" * 64}"}}', "sha256 of calibrate: no such file"),
    "search": ("search={trials=-1}", "trials = -1"),
    "whole": ("search={trials=1.5}", "not a whole number"),
    "data": ("calibrate=3", "calibrate = 3: not a text"),
}


@pytest.mark.parametrize(("text", "words"), FAULTY_ROWS.values(), ids=FAULTY_ROWS)
def test_a_faulty_model_costs_its_rows(tmp_path: Path, text: str, words: str) -> None:
    file = "" if text.startswith("file") else 'file="a.onnx"'
    bad_model, good_model = f'name="m"\n{file}\n{text}', 'name="n"\nfile="zoo:digits"'
    zoo = zoo_of(tmp_path, f'[[target]]\nname="t"\n[[model]]\n{bad_model}\n[[model]]\n{good_model}')
    bad, good = zoo.rows
    assert words in bad.fault
    assert f"{tmp_path}/zoo.toml: [[model]] 'm'" in bad.fault
    assert good.fault == ""
    assert zoo.faults == ()


def test_a_faulty_target_costs_its_rows(tmp_path: Path) -> None:
    zoo = zoo_of(
        tmp_path,
        '[[target]]\nname="t"\ntargt="sim"\n[[target]]\nname="u"\n'
        '[[model]]\nname="n"\nfile="zoo:digits"',
    )
    assert ["targt: no such key; target?" in row.fault for row in zoo.rows] == [True, False]


FAULTS = {
    "gate": ("[gate]\ncycles = 150", "[gate] cycles = 150: not a number from 0 to 100"),
    "nan": ("[gate]\ncycles = nan", "[gate] cycles = nan"),
    "table": ("[nigth]\nseconds = 1", "nigth: no such key; night?"),
    "key": ("[night]\nsecond = 1", "[night] second: no such key; seconds?"),
    "kind": ('night = "long"', "night: not a table"),
    "bool": ("[night]\nrows = true", "[night] rows = True"),
    "name": ("name = 3", "name = 3: not a text"),
    "nameless": ('[[model]]\nfile = "x"', "[[model]] number 1 has no name"),
    "double": ('[[target]]\nname="t"', "two [[target]] are named 't'"),
}


@pytest.mark.parametrize(("text", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_elsewhere_is_a_line_and_the_night_goes_on(
    tmp_path: Path, text: str, words: str
) -> None:
    zoo = zoo_of(
        tmp_path, f'{text}\n[[target]]\nname="t"\n[[model]]\nname="n"\nfile="zoo:digits"\n'
    )
    (line,) = zoo.faults
    assert words in line
    assert line.startswith(f"{tmp_path}/zoo.toml: ")
    assert len(zoo.rows) == 1


def test_files_are_looked_at_when_the_row_begins(tmp_path: Path) -> None:
    digest = Digest.of(b"a network")
    text = (
        '[[target]]\nname="t"\n[[model]]\nname="n"\nfile="n.onnx"\ncalibrate="d.npz"\n'
        f'sha256={{file="{digest}"}}'
    )
    (row,) = zoo_of(tmp_path, text).rows
    assert row.trouble() == f"{tmp_path}/n.onnx: cannot be read: No such file or directory"
    (tmp_path / "n.onnx").write_bytes(b"another network")
    assert f"{tmp_path}/n.onnx: has changed: sha256 " in row.trouble()
    (tmp_path / "n.onnx").write_bytes(b"a network")
    assert row.trouble() == f"{tmp_path}/d.npz: cannot be read: No such file or directory"
    (tmp_path / "d.npz").touch()
    assert row.trouble() == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name = ", "not TOML"),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "no model is on any target"),
        (b'[[model]]\nname="n"\nfile="zoo:digits"', "no model is on any target"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_says_nothing_is_refused(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "zoo.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        read_zoo(path)
    assert caught.value.hint


def test_values_of_another_kind_are_no_words(tmp_path: Path) -> None:
    assert words_of("target", "sim", OptionKind.TEXT, tmp_path) == ["--target", "sim"]
    assert words_of("float", True, OptionKind.FLAG, tmp_path) == ["--float"]
    assert words_of("runtime", "stand-in", OptionKind.FILE, tmp_path) == ["--runtime", "stand-in"]
    assert words_of("runtime", "a.so", OptionKind.FILE, tmp_path)[1] == f"{tmp_path}/a.so"
