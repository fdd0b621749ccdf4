"""Live jobs are found by stage, device and compile task as if one had gone through all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driver.campaign.live import Jobs, JobStage, JobState

JOBS = st.builds(
    JobState,
    stage=st.sampled_from(JobStage),
    batch=st.integers(0, 2),
    device=st.sampled_from(["", "a", "b"]),
)
STEPS = st.lists(st.dictionaries(st.integers(1, 9), st.none() | JOBS, max_size=3), max_size=12)


@given(STEPS)
def test_the_index_is_true_after_any_changes(steps: list[dict[int, JobState | None]]) -> None:
    jobs, plain = Jobs(), dict[int, JobState]()
    assert jobs.oldest is None
    for step in steps:
        before, known = jobs, dict(plain)
        gone = [number for number, job in step.items() if job is None and number in plain]
        jobs = jobs.with_({n: job for n, job in step.items() if job}).without(*gone)
        plain.update({n: job for n, job in step.items() if job})
        for number in gone:
            del plain[number]
        assert before == Jobs(known)
        assert jobs == plain
        for stage in JobStage:
            assert jobs.at(stage) == sorted(n for n, job in plain.items() if job.stage is stage)
        for device in ("", "a", "b", "c"):
            here = {n: job for n, job in plain.items() if job.device == device}
            held = {n for n, job in here.items() if job.stage is JobStage.HELD}
            assert set(jobs.held.get(device, ())) == held
            assert jobs.load(device) == len(here) - len(held)
        assert jobs.open_batches == len({job.batch for job in plain.values()} - {0})
