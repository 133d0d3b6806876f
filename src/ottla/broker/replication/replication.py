"""The replication part of a broker: logs, roles, fetchers, sessions, ISR changes and timers."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.peers import Peers
from ottla.broker.partitions.flush import Flusher, Worker
from ottla.broker.partitions.log_config import log_config
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals
from ottla.broker.partitions.replica_status import ReplicaStatus, replica_status
from ottla.broker.partitions.upkeep import Upkeep
from ottla.broker.replication.fetcher import Fetchers
from ottla.broker.replication.follower_session import fetch_limits
from ottla.broker.replication.follower_shell import FollowerShell
from ottla.broker.replication.isolation import Isolation
from ottla.broker.replication.isr_writer import IsrWriter
from ottla.broker.replication.liveness import PauseGuard, lag_limits
from ottla.broker.replication.log_dir_moves import LogDirMoves
from ottla.broker.replication.replica_selector import RackAwareSelector
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.replication.roles import Roles
from ottla.broker.replication.throttles import Throttles
from ottla.broker.runtime.part import BrokerPart, StopMode
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import Session, Store
from ottla.metadata.decisions import Decisions, Recorder
from ottla.metadata.image import ClusterImage
from ottla.replica.registration import OwnRegistration, Registration
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import StorageError

_log = logging.getLogger(__name__)

# The interval between checks of whether a leader's session is confirmed.
_CERTAINTY_S = 0.1
# A timer that runs `_LATE_MS` late shows that the process was paused. The process then reads
# requests for `_LISTENING_MS` before it judges followers.
_LATE_MS = 250
_LISTENING_MS = 100


@dataclass(frozen=True, slots=True)
class ReplicationStatus:
    """Counts of this broker's replicas, sessions and background work."""

    partitions: int
    leaders: int
    # Replicas whose log directory or log has failed.
    offline: int
    # Led partitions with out-of-sync replicas, and those below min.insync.replicas.
    under_replicated: int
    under_min_isr: int
    log_bytes: int
    # Offsets above the high watermark: the most in one log, and the sum over all logs.
    uncommitted_max: int
    uncommitted_total: int
    # Sessions of followers that fetch here, and this broker's own fetchers.
    follower_sessions: int
    fetchers: int
    # Flush jobs since the start, and the time that they took. Flush requests divided by jobs give
    # the group size.
    flush_jobs: int
    flush_ms_total: float
    flush_ms_longest: float
    # Files of deleted segments and logs that are still to be removed.
    removals_waiting: int
    # Completed rounds of the scrubber since the start, and the damage found.
    scrub_rounds: int
    scrub_damages: int
    replicas: tuple[ReplicaStatus, ...]


class Replication(BrokerPart):
    """Runs leaders and followers while the broker is registered.

    `stop` flushes and closes the logs.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        view: ClusterView,
        store: Store,
        directories: LogDirectories,
        peers: Peers,
        decisions: Decisions,
        isolated: Signal[[]],
        stop_mode: StopMode,
        *,
        worker: Worker | None,
        rng: random.Random,
    ) -> None:
        clock, spawn, inline = runtime.clock, runtime.spawn, directories.in_memory
        limits = lag_limits(settings)
        self._clock = clock
        self.monotonic_ms = clock.monotonic_ms
        self._view = view
        self._session_ms = settings.integer("broker.session.timeout.ms")
        self._stop_mode = stop_mode
        self.directories = directories
        self.flusher = Flusher(
            runtime.loop,
            clock,
            inline=inline,
            worker=worker,
            journal_from=settings.integer("log.flush.journal.min.logs"),
        )
        self.removals = Removals(runtime.loop, inline=inline)
        self.own = OwnRegistration(Registration(view.broker_id, 0, self._session_ms))
        self.throttles = Throttles(settings, clock)
        recorder = Recorder(decisions, clock.now_ms)
        following = FollowerShell(
            directories,
            self.own,
            recorder,
            self.throttles.follower,
            clock,
            spawn,
            self.removals,
            retry_ms_max=settings.integer("replica.fetch.backoff.ms"),
        )
        self._fetchers = Fetchers(
            peers,
            following,
            fetch_limits(settings),
            clock,
            spawn,
            per_source=settings.integer("num.replica.fetchers"),
        )
        isr_writer = IsrWriter(store, clock, spawn)
        self.roles = Roles(self.own, clock, recorder, isr_writer, self._fetchers, limits)
        self.partitions = Partitions(
            view,
            directories,
            self.flusher,
            clock,
            self.roles,
            group_commit=settings.text("log.flush.policy") == "group",
            config_of=lambda topic: log_config(topic, settings),
            removals=self.removals,
            keeps_deleted=lambda: settings.integer("delete.topic.trash.ms") > 0,
        )
        has_selector = settings.value("replica.selector.class") is not None
        self.selector = RackAwareSelector(view) if has_selector else None
        self.sessions = ReplicaSessions(
            self.partitions, self.roles, self.throttles.leader, rng, news_are_urgent=has_selector
        )
        self.moves = LogDirMoves(
            self.partitions, directories, self.throttles.moves, clock, spawn, self.removals
        )
        self.upkeep = Upkeep(settings, runtime, self.partitions, directories, self.flusher)
        self._isolation = Isolation(self.sessions, peers, clock, spawn, isolated, limits)
        self._look_every_ms = limits.look_every_ms
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._was_confirmed = True
        self._listening = PauseGuard(
            clock.monotonic_ms(),
            pause_ms=int(_CERTAINTY_S * 1000) + _LATE_MS,
            listening_ms=_LISTENING_MS,
        )
        # The store session of the current registration.
        self._session: Session | None = None

    @property
    def registration(self) -> Registration:
        """The broker's id and epochs under which it leads and follows."""
        return self.own.current

    async def start(self) -> None:
        """Remove the files that an earlier run had marked as deleted."""
        for deletion in self.directories.leftovers():
            self.removals.remove_later(deletion)

    def begin(self) -> None:
        """Begin to check for followers that lag (P17)."""
        self._every(self._look_every_ms / 1000, self._check_lag)
        self._every(_CERTAINTY_S, self._check_certainty)
        self.moves.resume()
        self.upkeep.begin()

    def close(self) -> None:
        """Stop leading and following."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._fetchers.close()

    async def stop(self) -> None:
        try:
            await self.upkeep.stop()
        finally:
            self._close_logs()

    def _close_logs(self) -> None:
        self.close()
        self.removals.close()
        self.flusher.close()
        high_watermarks = self.partitions.high_watermarks()
        self.partitions.close()
        try:
            self.directories.close(
                high_watermarks, clean=self._stop_mode.clean, now_ms=self._clock.now_ms()
            )
        except StorageError as error:
            _log.error("closing the logs: %s", error.message)

    def status(self) -> ReplicationStatus:
        replicas = tuple(map(replica_status, self.partitions))
        led = [each for each in replicas if each.is_leader]
        uncommitted = [
            each.log_end_offset - each.high_watermark for each in replicas if not each.is_offline
        ]
        return ReplicationStatus(
            partitions=len(replicas),
            leaders=len(led),
            offline=len(replicas) - len(uncommitted),
            under_replicated=sum(each.in_sync < each.replicas for each in led),
            under_min_isr=sum(each.is_under_min_in_sync for each in led),
            log_bytes=sum(each.size_bytes for each in replicas),
            uncommitted_max=max(uncommitted, default=0),
            uncommitted_total=sum(uncommitted),
            follower_sessions=len(self.sessions),
            fetchers=len(self._fetchers),
            flush_jobs=self.flusher.jobs_total,
            flush_ms_total=self.flusher.ms_total,
            flush_ms_longest=self.flusher.ms_longest,
            removals_waiting=len(self.removals),
            scrub_rounds=self.upkeep.scrubber.rounds,
            scrub_damages=self.upkeep.scrubber.damages,
            replicas=replicas,
        )

    def on_registered(self, broker_epoch: int, session: Session) -> None:
        """Give up the roles of an earlier registration, and start under a new one."""
        registration = Registration(self._view.broker_id, broker_epoch, self._session_ms)
        self.on_unregistered()
        self._session = session
        self._confirm(registration)
        self.own.current = registration

    def _confirm(self, registration: Registration) -> None:
        """Note the last renewal of the session.

        For three quarters of the session timeout after it, no other broker can be elected leader.
        """
        if self._session is not None:
            lease_ms = registration.session_ms
            registration.confirmed_until_ms = self._session.confirmed_ms + lease_ms * 3 // 4

    def on_unregistered(self) -> None:
        """Give up all roles, because the session and the registration ended.

        LeaderAndIsr restores them (S16).
        """
        for partition in self.partitions:
            self.roles.resign(partition, "the broker's session has ended")
            partition.leader_epoch = -1
            partition.version = -1

    def on_image(self, image: ClusterImage) -> None:
        """Apply a new image, in which brokers, topics or throttles may have changed."""
        self.throttles.configure(image)
        self.registration.live = {broker.id: broker.epoch for broker in image.brokers.values()}

    def _check_lag(self) -> None:
        self._isolation.look(self.registration, self._led)
        self._judge_when_listened()

    def _judge_when_listened(self) -> None:
        """Judge the followers; after a pause, only after the requests that arrived meanwhile.

        The process may be paused again before that, so the timer that waits for it checks again.
        """
        self._notice_pause()
        judge = self._judge_when_listened
        waiting = self._timers.pop(judge, None)
        if waiting is not None:
            waiting.cancel()
        left_ms = self._listening.left_ms()
        if left_ms:
            loop = asyncio.get_running_loop()
            self._timers[judge] = loop.call_later(left_ms / 1000, judge)
        else:
            self._judge_followers()

    def _notice_pause(self) -> None:
        self._listening.on_ran(self.monotonic_ms())

    def _judge_followers(self) -> None:
        if self._isolation.is_undecided:
            return
        contact_ms: dict[BrokerId, int] = {}
        # If all records are committed, as in nearly all partitions, no follower is late.
        uncommitted = self.roles.uncommitted
        for unfinished in self.flusher.unfinished:
            if isinstance(unfinished, Partition):
                uncommitted[unfinished] = None
        for partition in list(uncommitted):
            if self.roles.is_settled(partition):
                del uncommitted[partition]
            else:
                contact_ms = contact_ms or self._last_contacts()
                self.roles.on_deadline(partition, contact_ms)

    def _last_contacts(self) -> dict[BrokerId, int]:
        """Return each live broker's last fetch time, or the end of the last pause if later."""
        return {
            broker_id: max(self.sessions.contact_ms(broker_id), self._listening.awake_ms)
            for broker_id in self.registration.live
        }

    def _check_certainty(self) -> None:
        self._notice_pause()
        self._confirm(self.registration)
        confirmed = self.roles.is_confirmed(self.monotonic_ms())
        # Between two checks the session may have been unconfirmed for a while. `settle` then closed
        # partitions, and an idle one would stay closed.
        if confirmed and self._was_confirmed and not self.roles.closed_in_doubt:
            return
        if self._was_confirmed and not confirmed:
            self.sessions.report_followed()
        self._was_confirmed = confirmed
        self.roles.closed_in_doubt = False
        for partition in self._led():
            self.roles.settle(partition)

    def _led(self) -> Iterable[Partition]:
        return [partition for partition in self.partitions if partition.leader is not None]

    def _every(self, interval_s: float, chore: Callable[[], None]) -> None:
        def repeat() -> None:
            self._timers[chore] = loop.call_later(interval_s, repeat)
            chore()

        loop = asyncio.get_running_loop()
        self._timers[chore] = loop.call_later(interval_s, repeat)
