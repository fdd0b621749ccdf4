"""The campaign over drawn scenes, and over any interleaving that a farm can produce."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.search.stand_ins import stand_in_lease
from tilefarm.artifact import BuildFailure
from tilefarm.digest import Digest
from tilefarm.measurement import Counters, Measurement, RunFailure, Status

from driver.campaign.campaign import Campaign, WorkLimits
from driver.campaign.commands import Command, Compile, Dispatch, EndCampaign, Propose, Repeat, Tell
from driver.campaign.events import (
    BuildFailed,
    Built,
    DevicesGone,
    Event,
    Proposed,
    Stop,
)
from driver.campaign.live import JobStage
from driver.campaign.step import ASK_MOST, step
from driver.farm.device_messages import (
    Confirm,
    Confirmed,
    DeviceLent,
    DeviceLost,
    DeviceUp,
    RunEnded,
)
from tuner.lookahead import Lookahead

NOTHING = Digest.of(b"")


def good(device: str = "sim0") -> Measurement:
    return Measurement(artifact=NOTHING, device=device, counters=Counters(cycles=7))


def spoiled(status: Status = Status.INFRA_ERROR) -> RunFailure:
    return RunFailure(artifact=NOTHING, status=status, why="because")


def refused() -> BuildFailure:
    return BuildFailure(job=NOTHING, status=Status.COMPILE_ERROR, stage="lower", why="too big")


LOST = BuildFailure(job=NOTHING, status=Status.INFRA_ERROR, stage="compile", why="killed")
"""What becomes of a compile whose worker was killed again and again."""


def up(device: str) -> DeviceUp:
    return DeviceUp(stand_in_lease(device))


def ran(
    number: int,
    device: str,
    result: Measurement | RunFailure,
    *,
    unchecked: int = 0,
    seconds: float = 0.0,
) -> RunEnded:
    return RunEnded(
        number=number, device=device, result=result, ended_seconds=seconds, unchecked=unchecked
    )


def violations(campaign: Campaign) -> list[str]:
    """Broken promises in words; empty in every state that `step` can reach."""
    jobs, limits = campaign.jobs, campaign.limits
    running = [(n, j) for n, j in jobs.items() if j.stage is JobStage.RUNNING]
    broken = [
        f"job {n} runs on {j.device}: not up"
        for n, j in running
        if j.device not in campaign.devices
    ]
    broken += [
        f"{device} has {jobs.load(device)} jobs to run"
        for device in campaign.devices
        if jobs.load(device) > max(limits.prefetch_depth, limits.run_limit)
    ]
    broken += [
        f"job {n} has {len(j.strikes)} strikes"
        for n, j in jobs.items()
        if len(j.strikes) >= limits.attempts
    ]
    broken += [f"job {n} was never proposed" for n in jobs if n > campaign.last_job]
    if jobs.open_batches > limits.workers + 1:
        broken.append(f"{jobs.open_batches} compile tasks at once")
    if campaign.finished and jobs:
        broken.append("finished with live jobs")
    held = [n for n, job in jobs.items() if job.stage is JobStage.HELD]
    broken += [f"job {n} is held without an end" for n in held if not jobs[n].outcome]
    broken += [f"{d} has to confirm: not up" for d in jobs.held if d not in campaign.devices]
    broken += [f"{d} confirms: not up" for d in campaign.confirming if d not in campaign.devices]
    if list(jobs) != sorted(jobs):
        broken.append("a job is not where its number says")
    if not campaign.stopping:
        broken += [
            f"{d} idles while jobs are ready" for d in campaign.devices if idles(campaign, d)
        ]
    return broken


def idles(campaign: Campaign, device: str) -> bool:
    """Whether a device has nothing, and there is a job that waits for no other device."""
    jobs = campaign.jobs
    strikes = [jobs[n].strikes for n in jobs.at(JobStage.READY)]
    may_run = any(device not in by or {*campaign.devices} <= {*by} for by in strikes)
    return may_run and not jobs.load(device)


def play(
    *events: Event, limits: WorkLimits | None = None, lookahead: int = 12
) -> tuple[Campaign, list[Command]]:
    """The state after all events, and the commands of the last one."""
    campaign = Campaign(limits=limits or WorkLimits(), lookahead=Lookahead(lookahead))
    commands = list[Command]()
    for event in events:
        campaign, commands = step(campaign, event)
        assert violations(campaign) == []
    return campaign, commands


def held(run_seconds: float, ready: int = 40) -> list[int]:
    """What a device has in hand when a run has taken so long, and so many jobs are ready."""
    jobs = tuple(range(1, ready + 2))
    campaign, _ = play(up("sim0"), Proposed(jobs), limits=WorkLimits(workers=ready + 1))
    campaign, _ = step(campaign, *map(Built, jobs))
    campaign, _ = step(campaign, ran(1, "sim0", good(), seconds=run_seconds))
    assert violations(campaign) == []
    return [n for n, job in campaign.jobs.items() if job.device == "sim0"]


def test_a_device_has_more_in_hand_when_runs_are_short() -> None:
    assert held(1.0) == held(0.2) == [2, 3]
    assert held(0.05) == [2, 3, 4, 5]
    assert len(held(0.001)) == WorkLimits().run_limit


def under_way() -> Campaign:
    """One job was built and runs; 20 more are with the two workers."""
    campaign, _ = play(up("sim0"), Proposed((1,)), Built(1, 0.02), lookahead=40)
    assert campaign.batch == 10
    campaign, commands = step(campaign, Proposed(tuple(range(2, 22))))
    assert commands == [Compile(tuple(range(2, 12))), Compile(tuple(range(12, 22)))]
    assert campaign.room == -1
    return campaign


def test_a_compile_that_the_farm_spoils_is_tried_again() -> None:
    """Somebody has killed its workers: that is no end of a candidate, until it is always so."""
    limits = WorkLimits(attempts=3)
    campaign, _ = play(up("sim0"), Proposed((1,)), limits=limits)
    for _ in range(2):
        campaign, commands = step(campaign, BuildFailed(1, LOST))
        assert commands == [Compile((1,))]
    once_more, _ = step(campaign, Built(1, 0.1))
    assert once_more.jobs[1].stage is JobStage.RUNNING
    _, (told, *_) = step(campaign, BuildFailed(1, LOST))
    assert isinstance(told, Tell)
    assert told.outcome == LOST
    assert told.story[-1] == "given up after 3 tries: killed"


def test_a_run_without_an_end_in_time_is_repeated_by_itself_once() -> None:
    """One that a busy host made late is not told as slow, and one that is endless costs two."""
    late = ran(1, "sim0", spoiled(Status.RUN_TIMEOUT))
    campaign, commands = play(up("sim0"), Proposed((1,)), Built(1, 0.1), late)
    assert commands == [Dispatch("sim0", 1, alone=True)]
    assert campaign.jobs[1].strikes == ()
    _, commands = step(campaign, ran(1, "sim0", good()))
    assert isinstance(commands[0], Tell)
    _, commands = step(campaign, late)
    (told,) = (each for each in commands if isinstance(each, Tell))
    assert isinstance(told.outcome, RunFailure)
    assert told.outcome.status is Status.RUN_TIMEOUT


def test_a_few_candidates_are_shared_by_all_idle_workers() -> None:
    limits = WorkLimits(workers=4)
    campaign, _ = play(up("sim0"), Proposed((1,)), Built(1, 0.02), limits=limits)
    assert campaign.batch == 10
    _, commands = step(campaign, Proposed(tuple(range(2, 11))))
    assert commands[:4] == [Compile((2, 3, 4)), Compile((5, 6)), Compile((7, 8)), Compile((9, 10))]


def asked(commands: list[Command]) -> int:
    return sum(each.count for each in commands if isinstance(each, Propose))


def test_a_few_are_asked_for_only_when_a_worker_is_idle() -> None:
    told = ran(1, "sim0", good(), seconds=0.01)
    campaign, commands = step(under_way(), told, *(Built(n, 0.02) for n in range(2, 8)))
    assert (campaign.room, asked(commands)) == (1, 0)
    _, commands = step(campaign, *(Built(n, 0.02) for n in range(8, 12)))
    assert asked(commands) == 1


def test_as_many_are_asked_for_as_the_oldest_that_has_not_ended_allows() -> None:
    campaign, _ = step(under_way(), *(Built(n, 0.02) for n in range(2, 22)))
    for number in (2, 3, 4, 5):
        campaign, commands = step(campaign, ran(number, "sim0", good()))
        assert asked(commands) == 0, "the first one has not ended"
    campaign, commands = step(campaign, ran(1, "sim0", good()))
    assert asked(commands) == 2 * 5 + 20 - 21


def test_what_is_built_together_is_shared_among_the_devices() -> None:
    campaign, _ = play(up("sim0"), up("sim1"), Proposed((1, 2, 3)))
    _, commands = step(campaign, Built(1), Built(2), Built(3))
    assert commands[:3] == [Dispatch("sim0", 1), Dispatch("sim1", 2), Dispatch("sim0", 3)]


def test_those_that_may_have_cost_a_device_are_not_struck_but_run_alone() -> None:
    campaign, commands = play(
        up("sim0"),
        up("sim1"),
        Proposed((1, 2, 3)),
        Built(1),
        Built(2),
        Built(3),
        DeviceLost("sim0", "silence", perhaps=(1, 3)),
    )
    assert commands[0] == Dispatch("sim1", 1, alone=True)
    campaign, commands = step(campaign, ran(2, "sim1", good()))
    assert Dispatch("sim1", 3, alone=True) in commands
    assert [job.strikes for job in campaign.jobs.values()] == [(), ()]
    campaign, commands = step(campaign, ran(3, "sim1", spoiled()))
    assert Dispatch("sim1", 3, alone=True) in commands, "as long as it lives"


def test_only_what_runs_on_a_device_may_have_cost_it() -> None:
    campaign, _ = play(up("sim0"), Proposed((1, 2)), Built(1))
    campaign, _ = step(campaign, DeviceLost("sim0", "silence", perhaps=(1, 2, 99)))
    assert [job.alone for job in campaign.jobs.values()] == [True, False]


def test_the_first_device_makes_the_campaign_ask() -> None:
    _, commands = play(up("sim0"))
    assert commands == [Propose(6)]


def test_proposals_are_compiled_at_once_one_by_one_while_build_times_are_unknown() -> None:
    _, commands = play(up("sim0"), Proposed((1, 2, 3, 4)))
    assert commands == [Compile((1,)), Compile((2,)), Compile((3,)), Propose(2)]


def test_a_built_job_goes_to_a_device_and_the_next_batch_to_a_worker() -> None:
    _, commands = play(up("sim0"), Proposed((1, 2, 3, 4)), Built(2, 0.5))
    assert commands == [Dispatch("sim0", 2), Compile((4,))]


def test_batches_grow_until_a_task_is_worth_its_handling() -> None:
    campaign, _ = play(up("sim0"), Proposed((1,)), Built(1, 0.05))
    assert campaign.batch == 5


def test_the_least_loaded_device_gets_the_oldest_job() -> None:
    _, commands = play(up("sim0"), up("sim1"), Proposed((1, 2)), Built(1), Built(2))
    assert commands[0] == Dispatch("sim1", 2)


def test_a_failed_build_is_told_with_its_story() -> None:
    _, commands = play(up("sim0"), Proposed((1,)), BuildFailed(1, refused()))
    assert commands[0] == Tell(1, refused(), ("proposed", "compiling", "compile_error"))


def test_a_run_that_the_farm_spoiled_is_tried_on_another_device() -> None:
    _, commands = play(
        up("sim0"),
        up("sim1"),
        Proposed((1,)),
        Built(1),
        ran(1, "sim0", spoiled()),
    )
    assert commands[0] == Dispatch("sim1", 1)


def test_a_run_that_the_farm_spoiled_waits_for_another_device_while_there_is_one() -> None:
    limits = WorkLimits(prefetch_depth=1)
    events: list[Event] = [up("sim0"), up("sim1"), Proposed((1, 2)), Built(1), Built(2)]
    campaign, commands = play(*events, ran(1, "sim0", spoiled()), limits=limits)
    assert not any(isinstance(each, Dispatch) for each in commands)
    _, commands = step(campaign, ran(2, "sim1", good("sim1")))
    assert Dispatch("sim1", 1) in commands
    _, commands = step(campaign, DeviceLost("sim1", "gone", 2))
    assert Dispatch("sim0", 1) in commands


def test_a_run_that_failed_by_its_own_fault_is_final() -> None:
    crash = spoiled(Status.RUN_CRASH)
    _, commands = play(up("sim0"), Proposed((1,)), Built(1), ran(1, "sim0", crash))
    assert isinstance(commands[0], Tell)
    assert commands[0].outcome is crash


def test_the_third_strike_is_the_last() -> None:
    events: list[Event] = [up("sim0"), Proposed((1,)), Built(1)]
    events += [ran(1, "sim0", spoiled())] * 3
    _, commands = play(*events)
    assert isinstance(commands[0], Tell)
    assert commands[0].story[-1] == "given up after 3 tries: because"


def test_a_lost_device_strikes_only_the_job_that_ran() -> None:
    campaign, commands = play(
        up("sim0"), Proposed((1, 2)), Built(1), Built(2), DeviceLost("sim0", "gone", 1)
    )
    assert commands == []
    assert campaign.jobs[1].strikes == ("sim0",)
    assert campaign.jobs[2].strikes == ()
    assert campaign.jobs.at(JobStage.READY) == [1, 2]


def test_late_and_doubled_events_change_nothing() -> None:
    campaign, _ = play(up("sim0"), Proposed((1,)), Built(1), ran(1, "sim0", good()))
    for event in (ran(1, "sim0", good()), Built(1), ran(1, "sim1", spoiled())):
        assert step(campaign, event) == (campaign, [])


def test_an_answer_from_the_wrong_device_is_not_taken() -> None:
    campaign, _ = play(up("sim0"), Proposed((1,)), Built(1))
    assert step(campaign, ran(1, "sim1", good("sim1")))[0].jobs.at(JobStage.RUNNING) == [1]


def test_no_number_is_used_twice() -> None:
    campaign, _ = play(up("sim0"), Proposed((1, 2)))
    with pytest.raises(ValueError, match="a number is used once"):
        step(campaign, Proposed((2,)))


def test_a_tuner_that_has_nothing_more_is_asked_once_more_when_all_has_ended() -> None:
    events: list[Event] = [up("sim0"), Proposed((1,)), Proposed(())]
    _, commands = play(*events, Built(1))
    assert commands == [Dispatch("sim0", 1)]
    ended = [*events, Built(1), ran(1, "sim0", good())]
    _, commands = play(*ended)
    assert [type(c) for c in commands] == [Tell, Propose]
    _, commands = play(*ended, Proposed(()))
    assert commands == [EndCampaign("exhausted")]
    _, commands = play(*ended, Proposed((2,)))
    assert [type(c) for c in commands] == [Compile, Propose]


def test_stop_lets_the_running_end_and_drops_the_rest() -> None:
    events: list[Event] = [up("sim0"), Proposed((1, 2)), Built(1), Stop()]
    campaign, commands = play(*events)
    assert (list(campaign.jobs), commands) == ([1], [])
    _, commands = play(*events, Proposed(()), ran(1, "sim0", good()))
    assert [type(c) for c in commands] == [Tell, EndCampaign]


def test_no_device_left_ends_the_campaign() -> None:
    _, commands = play(up("sim0"), Proposed((1,)), DeviceLost("sim0"), DevicesGone())
    assert commands == [EndCampaign("no device")]


def test_no_device_left_is_no_end_of_the_search_when_the_tuner_has_no_more() -> None:
    """Before, it counted as exhausted with not one trial."""
    campaign, commands = play(Proposed((1,)), Proposed(()), DevicesGone())
    assert campaign.dry
    assert commands == [EndCampaign("no device")]


ONE_RAN = (
    up("sim0"),
    Proposed((1,)),
    Built(1),
    ran(1, "sim0", good(), unchecked=1),
)


def test_what_a_device_gave_is_told_when_it_has_confirmed_it() -> None:
    campaign, commands = play(*ONE_RAN)
    assert commands == [Confirm("sim0")], "it has nothing else to do"
    assert campaign.jobs.at(JobStage.HELD) == [1]
    _, commands = play(*ONE_RAN, Proposed(()))
    assert commands == [], "it was told to"
    _, commands = play(*ONE_RAN, Proposed(()), Confirmed("sim0"), Proposed(()))
    assert commands == [EndCampaign("exhausted")]
    _, commands = play(*ONE_RAN, Proposed(()), Confirmed("sim0"))
    assert commands[0] == Tell(1, good(), STORY)


STORY = ("proposed", "compiling", "built", "on sim0", "ok")


@pytest.mark.parametrize(("seconds", "together"), [(2.0, 1), (0.3, 4), (0.01, 16)])
def test_a_busy_device_confirms_when_much_would_have_to_be_run_again(
    seconds: float, together: int
) -> None:
    jobs = tuple(range(1, 33))
    campaign, _ = play(up("sim0"), Proposed(jobs), limits=WorkLimits(workers=33))
    campaign, _ = step(campaign, *map(Built, jobs))
    confirmed_after = []
    for number in jobs[:20]:
        ended = ran(number, "sim0", good(), unchecked=1, seconds=seconds)
        campaign, commands = step(campaign, ended)
        confirmed_after += [number] * (Confirm("sim0") in commands)
        assert violations(campaign) == []
    assert confirmed_after == [together]
    campaign, commands = step(campaign, Confirmed("sim0"))
    assert [c.job for c in commands if isinstance(c, Tell)] == [*range(1, 21)]


def test_an_idle_device_confirms_a_few_short_ones_together() -> None:
    campaign, _ = step(under_way(), *(Built(n, 0.02) for n in range(2, 8)))
    confirmed_after = []
    for number in range(1, 8):
        ended = ran(number, "sim0", good(), unchecked=1, seconds=0.01)
        campaign, commands = step(campaign, ended)
        confirmed_after += [number] * (Confirm("sim0") in commands)
    assert confirmed_after == [7], "there is nothing more to run"


def test_an_idle_device_confirms_what_workers_wait_for() -> None:
    ended = ran(1, "sim0", good(), unchecked=1, seconds=0.01)
    campaign, commands = step(under_way(), ended)
    assert commands == [Confirm("sim0")], "no third compile task is queued"
    campaign, _ = step(under_way(), ran(1, "sim0", good(), seconds=0.01))
    campaign, commands = step(replace(campaign, asking=False), Proposed(tuple(range(22, 32))))
    assert commands == [Compile(tuple(range(22, 32)))]
    campaign, commands = step(campaign, Built(2, 0.02))
    campaign, commands = step(campaign, ran(2, "sim0", good(), unchecked=1, seconds=0.01))
    assert commands == [], "a task is queued"
    campaign, commands = step(campaign, Stop())
    assert commands == [Confirm("sim0")]


def test_what_a_device_had_confirmed_stays_when_it_turns_wrong() -> None:
    campaign, commands = play(*ONE_RAN, Confirmed("sim0"), DeviceLost("sim0", "wrong"))
    assert commands == []
    assert not campaign.jobs


@pytest.mark.parametrize(
    "gone", [DeviceLost("sim0", "pulled"), DeviceLent("sim0")], ids=["lost", "lent"]
)
def test_what_a_device_had_not_confirmed_is_measured_again(gone: Event) -> None:
    campaign, commands = play(*ONE_RAN, gone)
    assert [(c.jobs) for c in commands if isinstance(c, Repeat)] == [(1,)]
    assert campaign.jobs.at(JobStage.READY) == [1]
    _, commands = play(*ONE_RAN, gone, up("sim1"))
    assert commands[0] == Dispatch("sim1", 1)
    _, commands = play(*ONE_RAN, gone, up("sim1"), ran(1, "sim1", good()))
    assert isinstance(commands[0], Tell)
    assert "sim0 has not confirmed it" in commands[0].story
    _, commands = play(*ONE_RAN, gone, Confirmed("sim0"))
    assert not commands, "too late"


def test_what_a_lent_device_had_not_begun_is_measured_elsewhere_and_strikes_nobody() -> None:
    began = (up("sim0"), Proposed((1, 2)), Built(1), Built(2))
    campaign, commands = play(*began, DeviceLent("sim0"))
    assert commands == []
    assert [campaign.jobs[n].strikes for n in (1, 2)] == [(), ()]
    _, commands = play(*began, DeviceLent("sim0"), up("sim1"))
    assert commands[:2] == [Dispatch("sim1", 1), Dispatch("sim1", 2)]


def test_a_device_that_comes_back_is_asked_to_confirm_anew() -> None:
    _, commands = play(
        *ONE_RAN,
        DeviceLost("sim0", "pulled"),
        up("sim0"),
        ran(1, "sim0", good(), unchecked=1),
    )
    assert commands == [Confirm("sim0")]


def test_when_stopped_what_is_not_confirmed_is_let_go_of() -> None:
    _, commands = play(*ONE_RAN, Proposed(()), Stop())
    assert commands == [], "it confirms"
    _, commands = play(*ONE_RAN, Proposed(()), Stop(), DeviceLost("sim0", "wrong"))
    assert commands == [Repeat((1,), "wrong"), EndCampaign("stopped")]


@dataclass
class World:
    """A farm that answers commands in an order that chance decides, and misbehaves."""

    chance: random.Random
    budget: int
    campaign: Campaign = field(default_factory=lambda: Campaign(lookahead=Lookahead(9)))
    pending: list[Event] = field(default_factory=list)
    queues: dict[str, list[int]] = field(default_factory=dict)
    told: Counter[int] = field(default_factory=Counter)
    issued: int = 0
    finished: str = ""

    def feed(self, event: Event) -> None:
        self.campaign, commands = step(self.campaign, event)
        assert violations(self.campaign) == []
        for command in commands:
            self.obey(command)

    def obey(self, command: Command) -> None:
        match command:
            case Propose(count):
                count = min(count, self.budget - self.issued)
                ended = min({*range(1, self.issued + 2)} - {*self.told})
                assert self.issued + count <= Lookahead(9).limit(ended - 1)
                jobs = tuple(range(self.issued + 1, self.issued + count + 1))
                self.issued += count
                self.pending.append(Proposed(jobs))
            case Compile(jobs):
                for job in jobs:
                    good_build = self.chance.random() < 0.8
                    self.pending.append(
                        Built(job, self.chance.random())
                        if good_build
                        else BuildFailed(job, self.chance.choice([refused(), LOST]))
                    )
            case Dispatch(device, job):
                self.queues[device].append(job)
            case Tell(job):
                self.told[job] += 1
            case Confirm(device):
                self.pending.append(Confirmed(device))
            case Repeat(jobs):
                assert not any(job in self.told for job in jobs)
            case EndCampaign(why):
                self.finished = why

    def happen(self) -> None:
        """One thing happens somewhere."""
        busy = [d for d, queue in self.queues.items() if queue]
        choices = ["answer"] * bool(self.pending) + ["run"] * bool(busy)
        choices += ["double"] * bool(self.pending) + ["lose"] * (len(self.queues) > 1)
        choices += ["lend"] * bool(self.queues)
        match self.chance.choice(choices or ["up"]):
            case "answer":
                self.feed(self.pending.pop(self.chance.randrange(len(self.pending))))
            case "double":
                event = self.chance.choice(self.pending)
                if not isinstance(event, Proposed):
                    self.feed(event)
            case "run":
                self.run(self.chance.choice(busy))
            case "lose":
                device = self.chance.choice(list(self.queues))
                queue = self.queues.pop(device)
                several = tuple(queue[: self.chance.randrange(2, 5)]) if len(queue) > 1 else ()
                if several and self.chance.random() < 0.5:
                    self.feed(DeviceLost(device, "pulled", 0, several))
                else:
                    self.feed(DeviceLost(device, "pulled", queue[0] if queue else 0))
                self.up(device + "'")
            case "lend":
                device = self.chance.choice(list(self.queues))
                del self.queues[device]
                self.feed(Confirmed(device))
                self.feed(DeviceLent(device))
                if self.chance.random() < 0.7:
                    self.up(device)
            case "up":
                self.up(f"sim{len(self.queues)}")

    def up(self, device: str) -> None:
        self.queues[device] = []
        self.feed(up(device))

    def run(self, device: str) -> None:
        job = self.queues[device].pop(0)
        failures = [Status.RUN_CRASH, Status.RUN_TIMEOUT, Status.INFRA_ERROR]
        status = self.chance.choice([Status.OK] * 3 + failures)
        result = good(device) if status is Status.OK else spoiled(status)
        unchecked, seconds = self.chance.random() < 0.7, self.chance.choice([0.01, 1.0])
        self.feed(ran(job, device, result, unchecked=unchecked, seconds=seconds))


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    budget=st.integers(0, 40),
    stop_after=st.integers(0, 400),
)
def test_every_interleaving_ends_with_every_job_told_once(
    seed: int, budget: int, stop_after: int
) -> None:
    world = World(random.Random(seed), budget)
    world.up("sim0")
    world.up("sim1")
    for happened in range(4000):
        if world.finished:
            break
        if happened == stop_after:
            world.feed(Stop())
        else:
            world.happen()
    assert world.finished in ("exhausted", "stopped")
    assert set(world.told.values()) <= {1}
    if world.finished == "exhausted":
        assert sorted(world.told) == list(range(1, budget + 1))


def test_a_thousand_devices_do_not_wait_for_thousands_of_proposals() -> None:
    campaign, _ = play(*(up(f"d{n}") for n in range(1000)), lookahead=4000)
    assert campaign.room == 2000
    _, commands = step(campaign, Proposed((1, 2, 3, 4)))
    assert Propose(ASK_MOST) in commands


def test_how_far_to_ask_ahead_follows_from_what_shall_be_busy() -> None:
    assert (
        WorkLimits(workers=2).busy_lookahead(8).most > WorkLimits(workers=2).busy_lookahead(2).most
    )
    assert (
        WorkLimits(workers=8).busy_lookahead(2).most > WorkLimits(workers=2).busy_lookahead(2).most
    )
