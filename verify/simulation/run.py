"""One simulated run: a world is made, troubled, healed and judged; everything from one seed."""

import asyncio
import gc
import itertools
import time
from collections.abc import Sequence

from ottla.base.chance import set_chance
from ottla.base.errors import OttlaError
from ottla.client import Admin, NewTopic
from ottla.testing.simulation.machine.world import OFFSETS, OFFSETS_PARTITIONS, STATE
from ottla.testing.simulation.virtual.loop import Deadlock, VirtualLoop
from verify.history.anomaly import HistoryRules
from verify.history.checker import HistoryVerdict, check
from verify.history.recorder import HistoryRecorder
from verify.simulation.checked_world import CheckedWorld
from verify.simulation.copying import TARGET, Copying
from verify.simulation.decisions import Choice, ChoiceSource
from verify.simulation.faults import Faults
from verify.simulation.guarding import GUARDED, Guarding
from verify.simulation.guarding import SETTINGS as GUARDED_SETTINGS
from verify.simulation.judging.atlas import Atlas
from verify.simulation.judging.invariants import Invariants
from verify.simulation.judging.liveness import PATIENCE_S, Liveness
from verify.simulation.judging.report import Report
from verify.simulation.judging.sights import Sights
from verify.simulation.late_topics import LateTopics
from verify.simulation.quiet import Quiet
from verify.simulation.workload import TOPIC, Workload
from verify.simulation.worlds.profile import Profile, draw

_LOOK_EVERY_S = 0.1
_START_S = 30.0
# Cycles are looked for at fixed moments, so that nothing depends on when.
_COLLECT_EVERY_S = 5.0
# All that lives is looked through so seldom; else only what has come since.
_COLLECT_ALL_EVERY = 12


class SimulationRun:
    """The parts of one run, on its loop."""

    def __init__(
        self,
        seed: int | str,
        profile: Profile,
        decisions: Sequence[Choice] | None,
        seconds: float,
    ) -> None:
        self.seconds = seconds
        self.profile = profile
        self.loop = VirtualLoop(seed)
        self.world = CheckedWorld(self.loop, seed)
        self.world.sees_death = profile.sees_death
        self.world.network.fragmentation = profile.fragmentation
        self.world.network.obeys_late = profile.late_requests
        self.recorder = HistoryRecorder(self.loop.time)
        self.choices = ChoiceSource(seed, decisions)
        self.decisions = self.choices.decisions(
            profile.weights,
            until_ms=int(seconds * 1000),
            mean_interval_ms=profile.fault_every_ms,
        )
        self.atlas = Atlas(profile)
        self.faults = Faults(self.world, self.atlas, profile.partitions)
        self.topics = {TOPIC: profile.partitions, OFFSETS: OFFSETS_PARTITIONS}
        self.sights = Sights(self.world)
        for broker_id in range(1, profile.brokers + 1):
            self.world.add_broker(broker_id, _settings(profile))
        self.workload = Workload(self.world.bootstrap, profile, self.recorder)
        if profile.copiers:
            self.world.copying = Copying(self.world, self.workload)
            self.topics |= {TARGET: profile.partitions, STATE: OFFSETS_PARTITIONS}
        self.guarding = Guarding(self.world, profile.session_ms) if profile.guarded else None
        if self.guarding is not None:
            self.topics[GUARDED] = profile.partitions
        self.late_topics = LateTopics(self.world, profile.late_topics, profile.replication, seconds)
        self.invariants = Invariants(self.world, self.topics)
        self._clients: list[asyncio.Task[None]] = []

    def go_to_end(self) -> None:
        """Run on the loop, for no longer than any run may last."""
        limit_s = self.seconds + _START_S + 2 * PATIENCE_S
        going = self.loop.create_task(self.go())
        self.loop.call_later(limit_s, self.loop.stop)
        going.add_done_callback(lambda _: self.loop.stop())
        try:
            self.loop.run_forever()
        except Deadlock as error:
            self.world.fail(f"deadlock: {error}")
        else:
            if going.done():
                going.result()
            else:
                self.world.fail(f"no end: it still runs after {limit_s:.0f} s")

    async def go(self) -> None:
        """The whole run."""
        beside = [
            asyncio.ensure_future(self._look_around()),
            asyncio.ensure_future(self._collect_garbage()),
        ]
        for machine in self.world.machines.values():
            machine.start()
        await self._create_topic()
        self._start_clients()
        if self.profile.late_topics:
            self.late_topics.start()
        await self._trouble()
        await self.faults.heal()
        self.world.note("*", "healed")
        if self.guarding is not None:
            self.guarding.is_over = True
        liveness = Liveness(self.world, self.workload, self._clients, self.late_topics)
        await liveness.prove()
        for task in beside:
            if task.done():
                task.result()
            task.cancel()

    async def _trouble(self) -> None:
        begin_s = self.loop.time()
        for decision in self.decisions:
            await asyncio.sleep(max(0.0, begin_s + decision.at_ms / 1000 - self.loop.time()))
            self.faults.begin(decision)
        await asyncio.sleep(max(0.0, begin_s + self.seconds - self.loop.time()))

    async def _create_topic(self) -> None:
        process = self.world.user_process("admin")
        await process.spawn(self.loop, self._ask_for_topic())

    async def _ask_for_topic(self) -> None:
        profile = self.profile
        topics = [
            NewTopic(
                name=name,
                partitions=profile.partitions,
                replication_factor=profile.replication,
                config={
                    "min.insync.replicas": str(profile.min_in_sync),
                    "segment.ms": str(profile.segment_ms),
                },
            )
            for name in self._new_topics()
        ]
        deadline_s = self.loop.time() + _START_S
        async with Admin(self.world.bootstrap) as admin:
            while True:
                try:
                    await admin.topics.create_all(topics)
                except OttlaError as error:
                    if self.loop.time() > deadline_s:
                        self.world.fail(f"the topic cannot be created: {error.message}")
                        return
                    await asyncio.sleep(0.1)
                else:
                    return

    def _new_topics(self) -> list[str]:
        more = [TARGET] if self.profile.copiers else []
        return [TOPIC, *more, *([GUARDED] if self.guarding is not None else [])]

    def _start_clients(self) -> None:
        workload, profile = self.workload, self.profile
        lives = [(f"p{n}", workload.produce) for n in range(1, profile.producers + 1)]
        lives += [(f"h{n}", workload.produce_hastily) for n in range(profile.hasty_producers)]
        lives += [(f"r{n}", workload.read) for n in range(1, profile.readers + 1)]
        lives += [(f"m{n}", workload.take_part) for n in range(1, profile.members + 1)]
        lives.append(("e1", workload.ask_ends))
        for name, life in lives:
            process = self.world.user_process(name)
            self._clients.append(process.spawn(self.loop, life(name)))
        if self.world.copying is not None:
            self.world.copying.start()
        if self.guarding is not None:
            self.guarding.start()

    async def _look_around(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            self.invariants.look()
            self.sights.look()
            if self.guarding is not None:
                self.guarding.look()
            self.atlas.look(self.world, self.topics)

    async def _collect_garbage(self) -> None:
        for number in itertools.count(1):
            await asyncio.sleep(_COLLECT_EVERY_S)
            gc.collect(1 if number % _COLLECT_ALL_EVERY else 2)


def simulate_seed(
    seed: int | str,
    *,
    seconds: float = 30.0,
    profile: Profile | None = None,
    decisions: Sequence[Choice] | None = None,
    keep_history: bool = False,
) -> Report:
    """Run one seed: `seconds` of trouble, then health, then judgement.

    `profile` and `decisions` stand in for those the seed would draw.
    """
    profile = profile or draw(seed)
    run = SimulationRun(seed, profile, decisions, seconds)
    report = Report(seed, profile, list(run.decisions))
    set_chance(run.world.chance_of("simulation"))
    began_s = time.perf_counter()
    with Quiet(run.world):
        try:
            run.go_to_end()
        finally:
            run.world.close()
            run.loop.close()
    verdict = check(run.recorder.operations(), HistoryRules(recency=True))
    _fill(report, run, verdict)
    report.real_s = time.perf_counter() - began_s
    if keep_history or not report.is_good:
        report.history = run.recorder.lines
    return report


def _fill(report: Report, run: SimulationRun, verdict: HistoryVerdict) -> None:
    world = run.world
    report.digest = f"{run.loop.digest:08x}"
    report.failures = list(world.failures)
    report.anomalies = verdict.anomalies
    report.events = world.events
    report.sometimes = world.sometimes
    report.operations = verdict.operations
    report.records_acknowledged = verdict.records_acknowledged
    report.unavailable_s = verdict.unavailable_s
    report.virtual_s = run.loop.time()
    report.callbacks_total = run.loop.callbacks_total


def _settings(profile: Profile) -> dict[str, str]:
    return {
        "log.flush.policy": profile.flush_policy,
        "log.flush.journal.min.logs": str(profile.journal_min_logs),
        "broker.session.timeout.ms": str(profile.session_ms),
        "min.insync.replicas": str(profile.min_in_sync),
        "default.replication.factor": str(profile.replication),
        "offsets.topic.replication.factor": str(profile.replication),
        "transaction.state.log.replication.factor": str(profile.replication),
        "transaction.state.log.min.isr": str(profile.min_in_sync),
        "replica.lag.time.max.ms": "2000",
        "auto.create.topics.enable": "false",
        # Disks that lie for a while would have their replicas given up.
        "log.scrub.max.bytes.per.second": "0",
        **(GUARDED_SETTINGS if profile.guarded else {}),
    }
