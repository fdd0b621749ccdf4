"""The search as a step: a session that knows the earlier trials, and a loop around it."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tilefarm.plural import plural
from tilefarm.threads import Breakage, start_thread
from tilefarm.watch.log import LineLog, Sink

from driver.campaign.campaign import WorkLimits
from driver.campaign.interfaces import SearchResult, SearchSettings
from driver.campaign.loop import Loop
from driver.farm.clock_baselines import ClockBaselines
from driver.farm.run_resources import RunResources
from driver.run_events import SearchBegan
from driver.stop_token import StopToken
from driver.tune.continued import LOOKAHEAD, NEAR, SEEDS, Continued, continued
from driver.tune.known_schedules import KnownSchedules, known_schedules, success
from driver.tune.prepared import Prepared, best_of
from driver.tune.run_context import RunContext
from driver.tune.summarise import standing
from tuner.schedule_store import ScheduleStore
from tuner.trial_store import TrialStore


def search(
    context: RunContext, prepared: Prepared, store: TrialStore, resources: RunResources, story: Sink
) -> SearchResult:
    """Measure candidates until there are enough, or it is stopped; `story` is the search's log."""
    settings = context.settings
    with context.watch.waiting(lambda: resources.waits_for):
        workers = resources.workers
    known_before = _known(context, prepared)
    with context.watch.waiting(lambda: "the tuner asks anew for what was measured before"):
        earlier = continued(
            prepared.tasks,
            store,
            trials=settings.trials,
            proposer=settings.proposer,
            seed=settings.seed if settings.search_seed is None else settings.search_seed,
            lookahead=settings.lookahead,
            least_gain=settings.least_gain / 100,
            seeds=known_before.points if known_before else {},
            near=known_before.near if known_before else (),
        )
    paces = ClockBaselines(store.paces())
    resources.leases.keep_to_one_clock(earlier.clock, paces)
    known = earlier.session.told
    loop = _loop(context, prepared, store, resources, earlier, story, workers, paces)
    _announce(context, prepared, store, earlier)

    def waits_for() -> str:
        return "; ".join(filter(None, (loop.waits_for(), resources.waits_for)))

    with context.step("search") as say, context.watch.waiting(waits_for):
        with _in_time(context) as stop:
            result = loop.run(stop)
        if (stop.is_requested or result.ended) and not context.stop.is_requested:
            result = _as_far_as_it_came(result, prepared, store)
        say(f"{plural(result.trials, 'trial')} in {result.seconds:.1f} s")
        if result.why == "exhausted" and (why := result.ended or earlier.session.why_ended):
            result = replace(result, ended=why)
            say(why)
        if known:
            say(f"{known} from earlier sessions")
        if earlier.is_another:
            say("which asked in another order")
        if was_known := success(earlier.seeds, prepared.tasks, store):
            say(was_known)
        say(f"compiled on {resources.compiled_on}")
    for line in resources.leases.left_out:
        context.say(line)
    store.end_run(context.run_id, result.why, ended=context.clock.wall_seconds())
    return result


@contextmanager
def _in_time(context: RunContext) -> Iterator[StopToken]:
    """Requested when the run is stopped, and when the search has had its seconds."""
    stop, is_over = StopToken(), threading.Event()
    seconds = context.settings.search_seconds

    def wait() -> None:
        if not is_over.wait(seconds):
            stop.request_stop()

    def hear() -> None:
        stop.request_stop()

    context.stop.connect(hear)
    waits = Breakage()
    if seconds is not None:
        start_thread(wait, name="search's seconds", broken=waits)
    try:
        yield stop
        waits.check()
    finally:
        is_over.set()
        context.stop.connect(None)


def _as_far_as_it_came(result: SearchResult, prepared: Prepared, store: TrialStore) -> SearchResult:
    """A search that has had its seconds is one that has ended, if every workload has a schedule."""
    if result.why != "stopped" or any(best_of(t, store) is None for t in prepared.tasks.values()):
        return result
    return replace(result, why="exhausted", ended=result.ended or "its seconds were over")


def _known(context: RunContext, prepared: Prepared) -> KnownSchedules | None:
    """The best schedules that other runs have found; None where they are not asked for."""
    path = context.settings.records
    if path is None:
        return None
    tasks = {name: task for name, task in prepared.tasks.items() if task.has_choice}
    if not tasks:
        return None
    with ScheduleStore(path) as store:
        found = known_schedules(tasks, store)
    context.say(f"records: {found}")
    return found


def _loop(
    context: RunContext,
    prepared: Prepared,
    store: TrialStore,
    resources: RunResources,
    earlier: Continued,
    story: Sink,
    workers: int,
    paces: ClockBaselines,
) -> Loop:
    settings = context.settings
    return Loop(
        tasks=prepared.tasks,
        session=earlier.session,
        records=store,
        executor=resources.executor,
        devices=resources.leases,
        settings=SearchSettings(
            devices=settings.farm.devices,
            limits=WorkLimits(workers=workers),
            device_wait_seconds=settings.farm.device_wait_seconds,
            run_timeout_seconds=settings.farm.run_timeout_seconds,
            run_id=context.run_id,
            wall_origin=context.wall_origin,
            proposer=settings.proposer,
            search=earlier.search,
            most_device_seconds=settings.device_seconds or math.inf,
        ),
        clock=context.clock,
        listen=context.listen,
        log=LineLog("search", story, style=settings.operations.style),
        scores=earlier.scores(prepared.tasks),
        paces=paces,
    )


def _announce(
    context: RunContext, prepared: Prepared, store: TrialStore, earlier: Continued
) -> None:
    """Note in records that a search begins, and tell whoever listens what is known already."""
    session, tasks = earlier.session, prepared.tasks
    description = {
        "model": prepared.files.model_digest.hex,
        "seed": context.settings.seed,
        LOOKAHEAD: session.lookahead.most,
        SEEDS: {name: point and dict(point) for name, point in earlier.seeds.items()},
        NEAR: sorted(earlier.near),
    }
    store.begin_run(context.run_id, description, begun=context.clock.wall_seconds())
    context.listen(
        SearchBegan(
            workloads=tuple((task.name, task.count) for task in tasks.values()),
            standings={name: standing(task, earlier.known[name]) for name, task in tasks.items()},
            trials=session.budget,
            done=session.told,
            seconds=context.now,
        )
    )
