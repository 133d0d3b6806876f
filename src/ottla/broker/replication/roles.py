"""Makes partitions leaders or followers, and carries out what their leader cores decide.

A transition happens within one turn of the loop. The leader epoch is set last, so that a failed
transition is repeated when the controller sends it again (R-9).
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Protocol, assert_never

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.follower_shell import FIRST_RETRY_MS
from ottla.broker.replication.liveness import LagLimits
from ottla.broker.runtime.signal import Signal
from ottla.metadata.decisions import Decision, Recorder
from ottla.metadata.image import PartitionImage
from ottla.replica.effects import (
    AdvanceHighWatermark,
    BelowMinIsr,
    Diverging,
    LeaderEffect,
    ProposeIsr,
    ReadState,
    Refuse,
    Resign,
    ServeFrom,
)
from ottla.replica.follower import Follower
from ottla.replica.isr import IsrChange, Rejection
from ottla.replica.leader import NO_CONTACTS, Leader
from ottla.replica.registration import OwnRegistration, Registration
from ottla.replica.term import Term
from ottla.replica.transition import Transition, transition

_log = logging.getLogger(__name__)

Answer = ServeFrom | Diverging | Refuse
NOT_LEADER = Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
STORAGE = Refuse(ErrorCode.KAFKA_STORAGE_ERROR)


class IsrStore(Protocol):
    """Writes leaders' ISR proposals to the store, and reports the outcomes to `leading`."""

    def propose(self, leading: "Roles", partition: Partition, change: IsrChange) -> None: ...

    def read(self, leading: "Roles", partition: Partition) -> None: ...


class FollowerFetching(Protocol):
    """Starts and stops fetching for followers."""

    def add(self, partition: Partition) -> None: ...

    def remove(self, partition: Partition) -> None: ...


class Roles:
    """Gives partitions their roles; implements `broker.partitions.partition.PartitionRoles`."""

    def __init__(
        self,
        own: OwnRegistration,
        clock: Clock,
        recorder: Recorder,
        isr_writer: IsrStore,
        fetchers: FollowerFetching,
        limits: LagLimits,
    ) -> None:
        self._own = own
        self._clock = clock
        self._recorder = recorder
        self.isr_writer = isr_writer
        self._fetchers = fetchers
        self._limits = limits
        # Whether `settle` has closed a partition because leadership was uncertain. The periodic
        # check resets it.
        self.closed_in_doubt = False
        # Led partitions that may have records above the high watermark. The periodic check looks at
        # these only, and drops those that have none.
        self.uncommitted: dict[Partition, None] = {}
        # Emitted after a partition's role has changed.
        self.on_role: Signal[[Partition]] = Signal()

    @property
    def registration(self) -> Registration:
        """The broker's id and epochs under which it leads."""
        return self._own.current

    def become(self, partition: Partition, image: PartitionImage) -> Transition:
        """Take the role that `image` gives this broker, unless a newer one is known."""
        own = self.registration
        what = transition(
            own.broker_id, own.broker_epoch, partition.leader_epoch, partition.version, image
        )
        match what:
            case Transition.IGNORE:
                return what
            case Transition.LEAD:
                self._lead(partition, image)
            case Transition.FOLLOW:
                self._follow(partition, image)
            case Transition.WAIT | Transition.LEAVE:
                self.give_up(partition, f"{partition.topic_partition} has no leader")
            case Transition.UPDATE:
                pass
            case _:
                assert_never(what)
        partition.image = image
        partition.leader_epoch = image.leader_epoch
        partition.version = image.version
        leader = partition.leader
        if leader is not None:
            now_ms = self._clock.monotonic_ms()
            if what is Transition.UPDATE:
                self.carry_out(partition, leader.on_state(image, now_ms=now_ms))
            else:
                self.carry_out(partition, leader.begin(now_ms=now_ms))
            self.settle(partition)
            if not self.is_settled(partition):
                self.uncommitted[partition] = None
        if what is not Transition.UPDATE:
            partition.wake_all()
            self.on_role.emit(partition)
        return what

    def _lead(self, partition: Partition, image: PartitionImage) -> None:
        log = partition.log
        # The core reads the start offset of its leader epoch from the log, so enter it first.
        log.begin_epoch(image.leader_epoch)
        term = Term(
            partition.topic_partition,
            self.registration,
            image,
            log,
            own_end=partition.own_end,
            high_watermark=partition.high_watermark,
            min_isr=partition.config.min_insync_replicas,
            now_ms=self._clock.monotonic_ms(),
        )
        self._stop_following(partition)
        partition.leader = Leader(
            term,
            lag_ms_max=self._limits.lag_ms_max,
            silence_ms_max=self._limits.silence_ms_max,
        )
        partition.gaps.begin_term(term.epoch_start)
        partition.open_to_clients()
        partition.flush_soon()
        _log.debug(
            "%s: leading in epoch %d from offset %d on, in sync are %s",
            partition.topic_partition,
            image.leader_epoch,
            term.epoch_start,
            image.isr,
        )

    def _follow(self, partition: Partition, image: PartitionImage) -> None:
        follower = Follower(
            partition.topic_partition,
            self.registration,
            image,
            partition.log,
            high_watermark=partition.high_watermark,
            retry_ms=FIRST_RETRY_MS,
        )
        reason = f"{partition.topic_partition} is led by broker {image.leader}"
        # Set this first, so that waiting requests are answered with the new leader.
        partition.image = image
        self.give_up(partition, reason)
        partition.follower = follower
        self._fetchers.add(partition)
        _log.debug(
            "%s: following broker %d in epoch %d from offset %d on",
            partition.topic_partition,
            image.leader,
            image.leader_epoch,
            partition.log_end_offset,
        )

    def give_up(self, partition: Partition, reason: str) -> None:
        """Give up a partition's role; answer waiting requests so that clients find the leader."""
        self._stop_following(partition)
        self.stand_down(partition, reason)

    def _stop_following(self, partition: Partition) -> None:
        if partition.follower is not None:
            self._fetchers.remove(partition)
            partition.follower = None

    def on_failure(self, partition: Partition) -> None:
        """See `broker.partitions.partition.PartitionRoles`."""
        self._stop_following(partition)
        if partition.leader is not None:
            partition.leader = None
            self.on_role.emit(partition)

    def resign(self, partition: Partition, cause: str) -> None:
        """Give up a partition's role, because the broker's registration has ended."""
        leader = partition.leader
        if leader is not None:
            now_ms = self._clock.monotonic_ms()
            self.carry_out(partition, leader.resign(cause, now_ms=now_ms))
        elif partition.follower is not None:
            self.give_up(partition, f"{partition.topic_partition}: {cause}")
            self.on_role.emit(partition)

    # Hot: once per flush of a partition; without group commit, once per batch.
    def on_own_end(self, partition: Partition, own_end: int) -> None:
        """See `broker.partitions.partition.PartitionRoles`."""
        leader = partition.leader
        if leader is not None:
            effects = leader.on_own_end(own_end)
            if effects:
                self.carry_out(partition, effects)
            if partition.high_watermark < own_end:
                self.uncommitted[partition] = None

    def is_settled(self, partition: Partition) -> bool:
        """Whether no follower of the partition can be late, because all records are committed."""
        leader = partition.leader
        return leader is None or (
            partition.high_watermark >= partition.log.log_end_offset
            and leader.term.negotiation.retry_at_ms is None
        )

    # Hot: once per partition that a follower asks for.
    def on_follower_fetch(
        self,
        partition: Partition,
        broker_id: int,
        broker_epoch: int,
        nonce: int,
        offset: int,
        last_fetched_epoch: int,
        leader_epoch: int,
    ) -> Answer:
        """Pass a fetch to the leader's core, and return the answer to send."""
        leader = partition.leader
        if leader is None:
            return STORAGE if partition.failure is not None else NOT_LEADER
        effects = leader.on_follower_fetch(
            BrokerId(broker_id),
            broker_epoch,
            nonce,
            offset,
            last_fetched_epoch,
            leader_epoch,
            self._clock.monotonic_ms(),
        )
        answer = self.carry_out(partition, effects)
        assert answer is not None, "a fetch is always answered"
        return answer

    def on_follower_full(self, partition: Partition, broker_id: int) -> None:
        """Note that a follower reported a full disk with its last fetch."""
        leader = partition.leader
        if leader is not None:
            now_ms = self._clock.monotonic_ms()
            self.carry_out(partition, leader.on_full(BrokerId(broker_id), now_ms=now_ms))

    def carry_out(self, partition: Partition, effects: tuple[LeaderEffect, ...]) -> Answer | None:
        """Carry out a leader's effects; return the answer to the fetch, if there is one."""
        answer: Answer | None = None
        for effect in effects:
            match effect:
                case AdvanceHighWatermark():
                    partition.advance(effect.high_watermark)
                case ServeFrom() | Diverging() | Refuse():
                    answer = effect
                case ProposeIsr():
                    self.isr_writer.propose(self, partition, effect.change)
                case ReadState():
                    self.isr_writer.read(self, partition)
                case BelowMinIsr():
                    partition.fail_acks(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
                case Resign():
                    self.stand_down(partition, f"{partition.topic_partition} has another leader")
                    partition.wake_all()
                    self.on_role.emit(partition)
                case Decision():
                    self._recorder.record(effect)
                case _:
                    assert_never(effect)
        return answer

    def on_isr_rejected(self, partition: Partition, nonce: int, rejection: Rejection) -> None:
        """Handle an ISR change that the store rejected. The leader may retry after a pause."""
        leader = partition.leader
        if leader is None:
            return
        now_ms = self._clock.monotonic_ms()
        self.carry_out(partition, leader.on_isr_rejected(nonce, rejection, now_ms=now_ms))
        retry_at_ms = leader.term.negotiation.retry_at_ms
        if partition.leader is leader and retry_at_ms is not None:
            self.uncommitted[partition] = None
            loop = asyncio.get_running_loop()
            loop.call_later(max(retry_at_ms - now_ms, 1) / 1000, self._retry, partition)

    def _retry(self, partition: Partition) -> None:
        """Retry a rejected ISR change, unless it is no longer needed."""
        leader = partition.leader
        if leader is not None:
            now_ms = self._clock.monotonic_ms()
            self.carry_out(partition, leader.on_retry(now_ms=now_ms))
            self.settle(partition)

    def on_config(self, partition: Partition) -> None:
        """Apply a changed min.insync.replicas of a partition's topic."""
        leader = partition.leader
        least = partition.config.min_insync_replicas
        if leader is not None and leader.term.min_isr != least:
            now_ms = self._clock.monotonic_ms()
            self.carry_out(partition, leader.on_min_isr(least, now_ms=now_ms))
            self.settle(partition)

    def is_confirmed(self, now_ms: int) -> bool:
        """Whether the store confirms this broker's registration."""
        return now_ms < self.registration.confirmed_until_ms

    def on_still_followed(
        self, broker_id: int, partitions: Iterable[Partition | None], at_ms: int
    ) -> None:
        """Note that a follower without new offsets still followed this leader at `at_ms`."""
        for partition in partitions:
            leader = None if partition is None else partition.leader
            if partition is not None and leader is not None:
                leader.on_still_followed(BrokerId(broker_id), at_ms)
                self.settle(partition)

    def on_deadline(
        self, partition: Partition, contact_ms: Mapping[BrokerId, int] = NO_CONTACTS
    ) -> None:
        """Check for lagging followers, and whether this broker still leads.

        `contact_ms` holds the time of each broker's last fetch of any partition from this broker.
        """
        leader = partition.leader
        if leader is None:
            return
        now_ms = self._clock.monotonic_ms()
        self.carry_out(partition, leader.on_deadline(now_ms=now_ms, contact_ms=contact_ms))
        self.settle(partition)

    def stand_down(self, partition: Partition, reason: str) -> None:
        """Stop leading; answer waiting requests so that clients look for the new leader."""
        partition.close_to_clients(reason)
        if partition.leader is not None:
            partition.leader = None
            partition.under_min_isr = False
            partition.fail_acks(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def settle(self, partition: Partition) -> None:
        """Update the partition's state that requests are checked against, from its leader core."""
        leader = partition.leader
        if leader is None:
            return
        partition.image = leader.term.negotiation.committed
        partition.under_min_isr = leader.term.under_min_isr
        if leader.term.is_certain(self._clock.monotonic_ms()):
            if partition.failure is None:
                partition.open_to_clients()
        else:
            self.closed_in_doubt = True
            partition.close_to_clients(
                f"{partition.topic_partition}: this broker does not know whether it still leads; "
                "the store of the cluster does not answer"
            )
