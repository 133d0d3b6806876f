"""Carries out the decisions of leaders: answers to fetches, high watermarks, ISR changes."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Protocol, assert_never

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
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
from ottla.replica.isr import IsrChange, Rejection
from ottla.replica.leader import NO_CONTACTS
from ottla.replica.registration import OwnRegistration, Registration

Answer = ServeFrom | Diverging | Refuse
NOT_LEADER = Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
STORAGE = Refuse(ErrorCode.KAFKA_STORAGE_ERROR)


class IsrStore(Protocol):
    """Writes leaders' ISR proposals to the store, and reports the outcomes to `leading`."""

    def propose(self, leading: "LeaderShell", partition: Partition, change: IsrChange) -> None: ...

    def read(self, leading: "LeaderShell", partition: Partition) -> None: ...


class LeaderShell(ABC):
    """Carries out what the leader cores of this broker decide."""

    def __init__(
        self, own: OwnRegistration, clock: Clock, recorder: Recorder, isr_writer: IsrStore
    ) -> None:
        self._own = own
        self._clock = clock
        self._recorder = recorder
        self.isr_writer = isr_writer
        # Whether `settle` has closed a partition because leadership was uncertain. The periodic
        # check resets it.
        self.closed_in_doubt = False
        # Emitted after a partition's role has changed.
        self.on_role: Signal[[Partition]] = Signal()

    @property
    def registration(self) -> Registration:
        """The broker's id and epochs under which it leads."""
        return self._own.current

    @abstractmethod
    def become(self, partition: Partition, image: PartitionImage) -> object:
        """Take the role that `image` gives this broker, unless a newer one is known."""

    # Hot: once per flush of a partition; without group commit, once per batch.
    def on_own_end(self, partition: Partition, own_end: int) -> None:
        """See `broker.partitions.partition.PartitionRoles`."""
        leader = partition.leader
        if leader is not None:
            effects = leader.on_own_end(own_end)
            if effects:
                self.carry_out(partition, effects)

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
