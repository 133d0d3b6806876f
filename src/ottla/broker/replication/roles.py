"""Makes partitions leaders or followers.

A transition happens within one turn of the loop. The leader epoch is set last, so that a failed
transition is repeated when the controller sends it again (R-9).
"""

import logging
from typing import Protocol, assert_never

from ottla.base.clock import Clock
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.follower_shell import FIRST_RETRY_MS
from ottla.broker.replication.leader_shell import IsrStore, LeaderShell
from ottla.broker.replication.liveness import LagLimits
from ottla.metadata.decisions import Recorder
from ottla.metadata.image import PartitionImage
from ottla.replica.follower import Follower
from ottla.replica.leader import Leader
from ottla.replica.registration import OwnRegistration
from ottla.replica.term import Term
from ottla.replica.transition import Transition, transition

_log = logging.getLogger(__name__)


class FollowerFetching(Protocol):
    """Starts and stops fetching for followers."""

    def add(self, partition: Partition) -> None: ...

    def remove(self, partition: Partition) -> None: ...


class Roles(LeaderShell):
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
        super().__init__(own, clock, recorder, isr_writer)
        self._fetchers = fetchers
        self._limits = limits

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
        _log.info(
            "%s: leading in epoch %d from offset %d on, in sync are %s",
            partition.topic_partition,
            image.leader_epoch,
            term.epoch_start,
            list(image.isr),
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
        _log.info(
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
