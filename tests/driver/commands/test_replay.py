"""`tilefarm replay`: lists what runs have kept, and says where a compile ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kit.kernels.nests import EXAMPLES, SIM
from tilefarm.artifact import CompileJob
from tilefarm.digest import Digest
from tilefarm.measurement import Status
from tilefarm.trace import Step, Trace

from compile_worker.machines.known import MACHINES
from compile_worker.progress_file import LastStep
from driver import cli
from driver.farm.compiling.reproducers import Reproducer, Reproducers
from driver.network import forget_plugins

REFUSED = CompileJob(workload=EXAMPLES["add"], trace=Trace((Step("nosuch"),)), target=SIM)
GOOD = CompileJob(workload=EXAMPLES["add"], trace=Trace(), target=SIM)
LAST = MACHINES["cpu"].passes[-1].name


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that has kept a failure and a good compile; found without `--out`."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "tilefarm-out" / "net"
    kept = Reproducers(folder / "kept")
    crash = Reproducer(
        job=REFUSED, status=Status.COMPILE_CRASH, why="SIGABRT", last=LastStep("flatten", "text")
    )
    kept.keep(crash)
    kept.keep(Reproducer(job=GOOD, status=Status.OK))
    return folder


def test_without_a_digest_it_lists(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay"]) == 0
    plain = capsys.readouterr().out.splitlines()
    assert cli.main(["replay", "--out", str(out), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert plain[0].split() == ["digest", "job", "status", "compiles"]
    assert {row["status"] for row in rows} == {"ok", "compile_crash"}
    assert {row["job"] for row in rows} == {GOOD.digest.short, REFUSED.digest.short}
    assert all(any(row["digest"] in line for line in plain) for row in rows)


def test_a_failure_names_the_stage_and_shows_the_ir_before_it(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["replay", REFUSED.digest.short]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"job      {REFUSED.digest.short}: add_")
    assert lines[1] == "kept     compile_crash: SIGABRT"
    assert lines[2].startswith("verdict  compile_error: step 1")
    assert "there is no such primitive" in lines[2]
    at = lines.index("stage    ScheduleError; before it: nest")
    assert "IR after nest:" in lines[at:]
    assert lines[-1]


def test_a_good_compile_is_short(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", GOOD.digest.hex, "--out", str(out)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert cli.main(["replay", GOOD.digest.hex, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["status"], document["stage"], document["after"]) == ("ok", "", LAST)
    assert document["ir"].startswith("func ")


def test_what_was_lowered_with_passes_of_users_is_replayed_with_these_alone(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "from compile_worker.plugins.custom_pass import custom_pass\n"
        "@custom_pass(after='flatten')\ndef tidy(func, target):\n    return func\n"
    )
    step = Step("lower_with", ("tidy", Digest.of(text.encode()).hex))
    job = CompileJob(workload=EXAMPLES["add"], trace=Trace((step,)), target=SIM)
    Reproducers(out / "kept").keep(Reproducer(job=job, status=Status.OK))
    Path("passes.py").write_text(text)
    Path("edited.py").write_text(f"{text}# edited")
    words = ["replay", job.digest.short]
    try:
        assert cli.main(words) == 2
        assert "needs the pass tidy of the plugin" in capsys.readouterr().err
        assert cli.main([*words, "--plugin", "edited.py"]) == 2
        said = capsys.readouterr().err
        assert f"another version, {Digest.of(Path('edited.py').read_bytes()).short}" in said
        forget_plugins()
        assert cli.main([*words, "--plugin", "passes.py"]) == 0
        assert "verdict  ok: " in capsys.readouterr().out
    finally:
        forget_plugins()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["00"], "no such compile is kept"),
        (["00", "--out", "nosuch"], "no such folder"),
        (["00", "--timeout", "0"], "--timeout 0 --memory 4096: more than 0"),
        (["00", "--timeout", "1e30"], "--timeout 1e+30 --memory 4096: more than 0 of each, and at"),
        (["00", "--memory", "9" * 30], "more than 0 of each, and at most 604800 seconds"),
    ],
)
def test_bad_input_is_one_error(
    out: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    assert cli.main(["replay", *words]) == 2
    assert why in capsys.readouterr().err
