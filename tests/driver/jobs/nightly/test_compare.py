"""Two nights compared: the verdict of every row, what is printed, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driver import cli


def zoo(**cycles: tuple[int | None, int | None]) -> dict[str, Any]:
    rows = [
        {"name": name, "plain_cycles": plain, "predicted_cycles": planned}
        for name, (plain, planned) in cycles.items()
    ]
    return {"networks": rows, "refused": {}}


def run(network: int | None, device: str = "d0", **workloads: int | None) -> dict[str, Any]:
    rows = [{"name": name, "best_cycles": cycles} for name, cycles in workloads.items()]
    return {
        "target_digest": device,
        "workloads": rows,
        "network_cycles": network,
        "best_cycles": 7,
    }


class Nights:
    """Two documents in a folder, and what `tilefarm bench compare` says of them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def write(self, name: str, document: object) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
        return str(path)

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = cli.main(["bench", "compare", *words])
        said = self.capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def nights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Nights:
    return Nights(tmp_path, capsys)


def test_what_is_only_in_one_night_is_not_forgotten(nights: Nights) -> None:
    old = nights.write("old.json", zoo(a=(10, 5), gone=(10, 5)))
    new = nights.write("new.json", zoo(a=(10, 5), fresh=(10, None)))
    code, said, _ = nights(old, new)
    assert code == 1
    assert said.splitlines()[-1] == "2 UNCHANGED, 2 INSUFFICIENT_HISTORY, 2 NOT_MEASURED"


def test_a_network_that_is_refused_now_was_lost(nights: Nights) -> None:
    old = nights.write("old.json", zoo(a=(10, 5)))
    new = nights.write("new.json", zoo() | {"refused": {"a": "no such operator"}})
    assert nights(old, new)[0] == 1


def test_folders_of_runs_say_which_layer(nights: Nights) -> None:
    nights.write("old/resnet/summary.json", run(2000, conv=1000, dense=500))
    nights.write("new/resnet/summary.json", run(2100, conv=1100, dense=500))
    code, said, _ = nights(str(nights.folder / "old"), str(nights.folder / "new"))
    assert code == 1
    first, *_ = said.splitlines()[1:]
    assert first.split() == ["resnet:", "conv", "1", "000", "1", "100", "+10.00", "%", "SLOWER"]
    assert said.splitlines()[-1] == "1 UNCHANGED, 2 SLOWER"
    assert nights(*(str(nights.folder / n) for n in ("old", "new")), "--tolerance", "10")[0] == 0


@pytest.mark.parametrize(("tolerance", "code"), [("0.2", 1), ("0.3", 0)])
def test_every_change_of_cycles_is_listed(nights: Nights, tolerance: str, code: int) -> None:
    old, new = nights.write("old", zoo(a=(1000, 1000))), nights.write("new", zoo(a=(1003, 999)))
    found, said, _ = nights(old, new, "--tolerance", tolerance)
    assert found == code
    assert "+0.30 %" in said
    assert "-0.10 %" in said
    assert nights(old, old)[1] == "2 UNCHANGED\n"


def test_another_device_is_no_slower_one(nights: Nights) -> None:
    old = nights.write("old/summary.json", run(None, device="d0", conv=1000))
    new = nights.write("new/summary.json", run(None, device="d1", conv=9000))
    code, said, _ = nights(str(Path(old).parent), str(Path(new).parent), "--json")
    assert code == 0
    document = json.loads(said)
    assert document["passes"] is True
    assert {row["verdict"] for row in document["rows"]} == {"DEVICE_CHANGED"}
    assert {row["change_percent"] for row in document["rows"]} == {None}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "not JSON"),
        ("[]", "not a document of ours"),
        ("{}", "not a document of ours"),
        ('{"networks": [{"name": "a"}], "refused": {}}', "not a document of ours"),
        ('{"networks": [], "refused": {}}', "nothing with cycles"),
    ],
)
def test_what_is_no_night_is_refused(nights: Nights, content: str, told: str) -> None:
    good, bad = nights.write("good.json", zoo(a=(1, 1))), nights.folder / "bad.json"
    bad.write_text(content)
    code, _, error = nights(good, str(bad))
    assert code == 2
    assert f"bad.json: {told}" in error
    assert "try: a file of `tilefarm bench zoo --json`" in error
    assert "cannot be read" in nights(good, str(nights.folder / "absent.json"))[2]
    assert "not a percentage" in nights(good, good, "--tolerance", "nan")[2]


def test_times_of_a_clock_are_no_cycles(nights: Nights) -> None:
    good = nights.write("good.json", zoo(a=(1, 1)))
    clocked = nights.write("clocked.json", run(None, device="d", conv=1) | {"best_seconds": 1e-5})
    code, _, error = nights(good, clocked)
    assert code == 2
    assert "times were told by a clock, and nights are compared in cycles" in error
    assert "try: a run on devices that count them" in error
    trained = zoo(a=(None, None))
    trained["networks"][0]["program_seconds"] = 1e-5
    assert "times were told by a clock" in nights(good, nights.write("cpu.json", trained))[2]


def test_runs_of_different_networks_are_not_compared(nights: Nights) -> None:
    """They came out as one that had lost everything."""
    old, new = nights.write("old", run(5, a=1, b=2)), nights.write("new", run(5, c=1))
    code, _, err = nights(old, new)
    assert code == 2
    assert "are of different networks: no workload is in both" in err
    assert nights(old, nights.write("new", run(5, b=2, c=1)))[0] == 1, "one is lost"
