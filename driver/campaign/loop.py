"""Carries a campaign's commands out: tuner, compile workers, devices and the clock meet only here.

Everything that happens elsewhere arrives as a message in one queue; the loop's thread alone touches
the campaign, the tuning session and the records.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tilefarm.artifact import Artifact
from tilefarm.clock import Clock
from tilefarm.lease import DeviceInfo
from tilefarm.measurement import Measurement, RunFailure
from tilefarm.watch.log import Log

from driver.campaign import commands, events
from driver.campaign.campaign import Campaign
from driver.campaign.candidate import Candidate
from driver.campaign.commands import Command
from driver.campaign.device_slots import BROKEN_SECONDS, DeviceSlots
from driver.campaign.events import Event, JobId
from driver.campaign.frozen_gc import gc_frozen
from driver.campaign.interfaces import Records, SearchResult, SearchSettings
from driver.campaign.live import JobStage
from driver.campaign.measuring import Task
from driver.campaign.scores import Scores
from driver.campaign.starvation import Starvation
from driver.campaign.step import step
from driver.campaign.time_profile import TimeProfile
from driver.campaign.trial_recorder import TrialRecorder
from driver.campaign.tuner_thread import Proposals, TunerThread
from driver.farm import device_messages
from driver.farm.clock_baselines import ClockBaselines
from driver.farm.compiling.executor import Build, Builds, Executor
from driver.farm.device_messages import (
    Confirm,
    DeviceBusy,
    DeviceLent,
    DeviceLost,
    DeviceUp,
    RunEnded,
)
from driver.farm.lease_source import LeaseSource
from driver.run_events import DeviceJoined, DeviceLeft, Notice, RunEvent, Span
from driver.stop_token import StopToken
from tuner.session import TuningSession

Message = Builds | BaseException | Proposals | device_messages.Message | events.Stop

LOOK_SECONDS: Final = 1.0
_STILL_LOOKS: Final = 4
"""So often in a row nothing is found to be under way before the search is given up."""


class Loop:
    """One search.

    Args:
        tasks: by the names that the session uses.
        session: belongs to the loop from now on.
        scores: what earlier sessions have measured.
        paces: of the devices that they had; also given to `devices`.
        log: gets the story of every trial.
    """

    def __init__(
        self,
        *,
        tasks: Mapping[str, Task],
        session: TuningSession,
        records: Records,
        executor: Executor,
        devices: LeaseSource,
        settings: SearchSettings,
        clock: Clock,
        listen: Callable[[RunEvent], None],
        scores: Scores | None = None,
        paces: ClockBaselines | None = None,
        log: Log | None = None,
    ) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._tasks = tasks
        self._tuner = TunerThread(session, report=self._put, clock=clock)
        self._recorder = TrialRecorder(
            tuner=self._tuner,
            records=records,
            scores=scores or Scores({}, {}),
            settings=settings,
            listen=listen,
            now=self._now,
            log=log,
        )
        self._records = records
        self._paces = paces or ClockBaselines()
        self._times = TimeProfile(settings.wall_origin, listen)
        self._executor = executor
        self._settings = settings
        self._clock = clock
        self._listen = listen
        self._campaign = Campaign(limits=settings.limits, lookahead=session.lookahead)
        self._candidates: dict[JobId, Candidate] = {}
        self._slots = DeviceSlots(
            devices,
            devices=settings.devices,
            wait_seconds=settings.device_wait_seconds,
            report=self._put,
            clock=clock,
        )
        self._starvation = Starvation(clock)
        self._result: str | None = None
        self._device_seconds = 0.0
        self._spent = ""

    @property
    def spans(self) -> Sequence[Span]:
        """Who did what for which candidate so far."""
        return self._times.spans

    def run(self, stop: StopToken) -> SearchResult:
        """Search until the budget is spent, the spaces are exhausted, or it is stopped.

        Raises:
            FarmFault: compiling is not possible any more.
            Exception: whatever a thread died of; a fault of ours.
        """
        began = self._clock.seconds()
        close_seconds = BROKEN_SECONDS
        stop.connect(lambda: self._messages.put(events.Stop()))
        try:
            self._tuner.start()
            self._slots.open()
            with gc_frozen():
                while self._result is None:
                    self._hear(self._next())
                    self._watch_budget()
            close_seconds = self._settings.run_timeout_seconds
        finally:
            stop.connect(None)
            self._tuner.close()
            self._slots.close(close_seconds)
        return SearchResult(
            why=self._result,
            ended=self._spent,
            trials=self._recorder.trials,
            lookahead=self._campaign.lookahead.most,
            first_measured_seconds=self._times.first_measured_seconds,
            seconds=self._clock.seconds() - began,
            split=self._times.split,
            error=self._slots.error if self._result == "no device" else None,
        )

    def _watch_budget(self) -> None:
        """Begin nothing new once devices have had their time."""
        most = self._settings.most_device_seconds
        if self._result is None and not self._spent and self._device_seconds >= most:
            self._spent = f"its {most:g} s on devices were over"
            self._feed(events.Stop())

    # ---- messages in -----------------------------------------------------------------------------

    def _put(self, message: Message) -> None:
        self._messages.put(message)

    def _next(self) -> Message:
        """The next message.

        Raises:
            RuntimeError: none can come any more.
        """
        looks = 0
        while looks < _STILL_LOOKS:
            with contextlib.suppress(queue.Empty):
                return self._messages.get(timeout=LOOK_SECONDS)
            looks = looks + 1 if self._is_still else 0
        raise RuntimeError(f"nothing is under way in a search that is not over; {self.waits_for()}")

    @property
    def _is_still(self) -> bool:
        """Whether nobody has been given anything to do, nor looks for a device."""
        at_work = self._campaign.asking or self._campaign.jobs.at(JobStage.COMPILING)
        return not at_work and self._slots.idle

    def _hear(self, message: Message) -> None:
        match message:
            case Builds(builds):
                self._built(builds)
            case Proposals():
                self._proposed(message)
            case events.Stop():
                self._feed(message)
            case BaseException():
                raise message
            case RunEnded():
                self._ran(message)
            case DeviceBusy(device=device, why=why, wait_seconds=seconds):
                self._say(f"{device}: {why}; waits up to {seconds:g} s until it can be timed")
            case _:
                for event in self._slots.heard(message):
                    self._note_device(event)
                    self._feed(event)

    def _note_device(self, event: Event) -> None:
        match event:
            case DeviceUp(lease=lease):
                device = lease.device
                if remark := self._paces.remark(device):
                    self._say(remark)
                self._listen(
                    DeviceJoined(
                        device=device.name,
                        sandbox=device.sandbox,
                        runtime=device.runtime,
                        clock=device.clock.value,
                        seconds=self._now(),
                    )
                )
            case DeviceLost(device=name, why=why, rests=rests):
                self._listen(
                    DeviceLeft(
                        device=name,
                        why=why,
                        seconds=self._now(),
                        how="rests" if rests else "lost",
                    )
                )
            case DeviceLent(device=name):
                why = "others have a fairer claim, or it goes out of service"
                self._listen(DeviceLeft(device=name, why=why, seconds=self._now(), how="lent"))

    def _built(self, builds: Sequence[Build]) -> None:
        happened: list[Event] = []
        for build in builds:
            candidate = self._candidates.get(build.number)
            if candidate is None:
                continue
            began, ended = build.began_seconds, build.ended_seconds
            candidate.digest = build.result.job
            self._times.note(candidate, "compile", build.lane, began, ended)
            if isinstance(build.result, Artifact):
                candidate.artifact = build.result
                happened.append(events.Built(build.number, ended - began))
            else:
                happened.append(events.BuildFailed(build.number, build.result))
        self._feed(*happened)

    def _ran(self, run: RunEnded) -> None:
        candidate = self._candidates.get(run.number)
        if candidate is None:
            return
        self._times.note(candidate, "transfer", run.device, run.began_seconds, run.sent_seconds)
        self._times.note(candidate, "run", run.device, run.sent_seconds, run.ended_seconds)
        self._device_seconds += run.ended_seconds - run.sent_seconds
        if run.is_implausible and isinstance(run.result, RunFailure):
            self._say(f"not believed: {run.result.why}")
        device = self._slots.info(run.device)
        if isinstance(run.result, Measurement) and device is not None:
            candidate.ran_on = device
            run = replace(run, result=self._paces.told(run.result, device))
        self._feed(run)

    def _keep_pace(self, device: DeviceInfo) -> None:
        """Keep the pace of a device of which a time is kept, if it is the first."""
        if self._paces.note(device):
            self._records.insert_pace(device.name, device.known_seconds)

    # ---- commands out ----------------------------------------------------------------------------

    def _feed(self, *happened: Event) -> None:
        self._campaign, orders = step(self._campaign, *happened)
        for command in orders:
            self._obey(command)
        if note := self._starvation.look(self._campaign):
            self._say(note)

    def _obey(self, command: Command) -> None:
        match command:
            case commands.Propose(count):
                self._tuner.ask(count)
            case commands.Compile(jobs):
                self._compile(jobs)
            case commands.Dispatch(device, job, alone):
                self._dispatch(device, job, alone=alone)
            case commands.Tell(job, outcome, story):
                candidate = self._candidates.pop(job)
                if isinstance(outcome, Measurement) and candidate.ran_on is not None:
                    self._keep_pace(candidate.ran_on)
                self._recorder.tell(job, candidate, outcome, story)
            case Confirm(device):
                self._slots.confirm(device)
            case commands.Repeat(jobs, why):
                self._say(f"measured again, as it was not confirmed: {len(jobs)} ({why})")
            case commands.EndCampaign(why):
                self._result = why

    def _proposed(self, answer: Proposals) -> None:
        for each in answer.given_up:
            self._say(f"{each.task} is given up: {each.why}")
        began, ended = answer.began_seconds, answer.ended_seconds
        for at, proposal in enumerate(answer.proposals):
            task = self._tasks[proposal.task]
            candidate = Candidate.of(task, proposal.point)
            self._candidates[proposal.number] = candidate
            share = (ended - began) / len(answer.proposals)
            since = began + share * at
            self._times.note(candidate, "propose", "driver", since, since + share)
        self._feed(events.Proposed(tuple(proposal.number for proposal in answer.proposals)))

    def _compile(self, jobs: Sequence[JobId]) -> None:
        batch = [
            (number, candidate.task.compile_job(candidate.trace))
            for number in jobs
            for candidate in (self._candidates[number],)
        ]
        self._executor.submit(batch, self._messages.put)

    def _dispatch(self, device: str, number: JobId, *, alone: bool) -> None:
        settings = self._settings
        order = self._candidates[number].order(
            number,
            run_id=settings.run_id,
            timeout_seconds=settings.run_timeout_seconds,
            clock=self._slots.clock(device),
            alone=alone,
        )
        self._slots.put(device, order)

    # ---- the rest --------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._clock.wall_seconds() - self._settings.wall_origin

    def _say(self, text: str) -> None:
        self._listen(Notice(text=text, seconds=self._now()))

    def waits_for(self) -> str:
        """What is under way and on which devices, in words; for any thread."""
        return self._campaign.in_words
