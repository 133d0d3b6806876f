"""Requests to the active controller: elections, reassignments, shutdowns, rebalancing."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.registration import check_controller, known_racks
from ottla.broker.controller.active import ActiveController
from ottla.broker.controller.store_access import Deposed
from ottla.controller import reassignment
from ottla.controller.election import (
    Change,
    Rules,
    elect_unclean,
    move_away,
    prefer,
    still_led,
    to_return,
)
from ottla.coordination.interface.store import Delete, NoNode, StoreError
from ottla.metadata import paths
from ottla.metadata.image import PartitionImage
from ottla.metadata.notices import decode_partitions, decode_reassignments

_log = logging.getLogger(__name__)

# The error of each requested partition; None if the request was carried out.
Outcomes = dict[TopicPartition, OttlaError | None]


class ElectionType(IntEnum):
    """The election types of ElectLeaders (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class Requests:
    """Carries out requests to the active controller.

    Most of them run as jobs of the queue (`Jobs`). All may raise Deposed and StoreUnavailable.
    `apart`: no move may bring two replicas of a partition onto one rack.
    """

    def __init__(self, active: ActiveController, *, apart: bool) -> None:
        self._active = active
        self._apart = apart

    async def unreached(self, names: Iterable[TopicPartition] | None) -> set[BrokerId]:
        """Return the brokers in a preferred election of `names` that do not answer now.

        Both the preferred leaders and the ISRs are asked: a leader that the controller cannot reach
        would not serve, and such a follower would not fetch from the new leader. This does not run
        as a job of the queue.
        """
        active = self._active
        context = active.context
        states = [context.partition(n) for n in (context.names() if names is None else names)]
        away = [s for s in states if s is not None and s.leader != s.replicas[0]]
        asked = {broker: None for s in away for broker in (s.replicas[0], *s.isr)}
        asked.pop(active.messages.controller_id, None)
        return set(asked) - await active.reachability.answering(asked)

    async def elect(
        self,
        kind: ElectionType,
        names: Sequence[TopicPartition] | None,
        unreached: Collection[BrokerId] = (),
    ) -> Outcomes:
        """Hold elections for the partitions in `names`, and return their outcomes.

        If `names` is None, elections are held for all partitions; outcomes with
        ELECTION_NOT_NEEDED are then left out. No preferred leader in `unreached` is elected.
        """
        active, context = self._active, self._active.context
        asked = list(context.names()) if names is None else list(names)
        live = active.context.live
        outcomes = self._unknown(asked)

        def decide(name: TopicPartition, partition: PartitionImage, rules: Rules) -> Change | None:
            candidates = context.live_for(name, live)
            outcomes[name] = None
            try:
                if kind is ElectionType.PREFERRED:
                    _check_reached(partition, candidates, unreached)
                    return prefer(partition, candidates, cause="asked for the preferred leader")
                return elect_unclean(partition, candidates, rules, cause="asked for, if unclean")
            except OttlaError as error:
                outcomes[name] = error
                return None

        await active.changes.decide([name for name in asked if name not in outcomes], decide)
        if names is None:
            outcomes = {
                name: error
                for name, error in outcomes.items()
                if error is None or error.code is not ErrorCode.ELECTION_NOT_NEEDED
            }
        return outcomes

    async def reassign(
        self,
        wanted: Mapping[TopicPartition, Sequence[int] | None],
        *,
        may_change_factor: bool = True,
    ) -> Outcomes:
        """Begin reassignments, or cancel those whose target is None (KIP-455)."""
        active, context = self._active, self._active.context
        registered = await known_racks(active.store)
        live = context.live
        outcomes = self._unknown(wanted)

        def decide(name: TopicPartition, partition: PartitionImage, rules: Rules) -> Change | None:
            goal = wanted[name]
            outcomes[name] = None
            try:
                if goal is None:
                    return reassignment.cancel(partition, live, rules)
                return reassignment.begin(
                    partition,
                    goal,
                    live,
                    rules,
                    registered=registered,
                    may_change_factor=may_change_factor,
                    apart=self._apart,
                )
            except OttlaError as error:
                outcomes[name] = error
                return None

        await active.changes.decide([name for name in wanted if name not in outcomes], decide)
        return outcomes

    def moves(self) -> dict[TopicPartition, PartitionImage]:
        """Return the partitions with a reassignment in progress."""
        context = self._active.context
        found = {name: context.partition(name) for name in context.names()}
        return {n: p for n, p in found.items() if p is not None and p.is_moving}

    async def shut_down(self, broker_id: BrokerId, broker_epoch: int) -> list[TopicPartition]:
        """Move leadership away from a broker; return the partitions it still leads.

        Raises OttlaError.
        """
        active, context = self._active, self._active.context
        broker = context.brokers.get(broker_id)
        if broker is None or (broker_epoch >= 0 and broker_epoch != broker.epoch):
            raise OttlaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"broker {broker_id} with epoch {broker_epoch} is not registered (any more)",
            )
        context.stopping[broker_id] = broker.epoch
        names = context.hosted_by({broker_id})
        live = context.staying
        cause = f"broker {broker_id} stops"
        await active.changes.decide(
            names,
            lambda _name, partition, rules: move_away(
                partition, broker_id, live, rules, cause=cause
            ),
        )
        states = {n: p for n in names if (p := context.partition(n)) is not None}
        sender = active.senders.get(broker_id)
        if sender is not None:
            left = {n: p.leader_epoch for n, p in states.items() if p.leader != broker_id}
            sender.stop_replicas(left, delete=False)
        return [name for name, partition in states.items() if still_led(partition, broker_id)]

    def away(self, percentage: int) -> list[TopicPartition]:
        """Return the partitions to move to preferred leaders, of imbalanced brokers only (P26).

        A broker is imbalanced if others lead more than `percentage` percent of the partitions whose
        preferred leader it is.
        """
        context = self._active.context
        partitions = {n: p for n in context.names() if (p := context.partition(n)) is not None}
        return to_return(partitions, context.staying, percentage)

    async def rebalance(self, percentage: int, unreached: Collection[BrokerId]) -> None:
        """Move leadership back to preferred leaders, if no broker concerned is in `unreached`."""
        active, context = self._active, self._active.context
        live = context.staying

        def decide(name: TopicPartition, partition: PartitionImage, _rules: Rules) -> Change | None:
            if not set(unreached).isdisjoint((partition.replicas[0], *partition.isr)):
                return None
            try:
                return prefer(partition, context.live_for(name, live), cause="leaders rebalanced")
            except OttlaError:
                return None

        moved = await active.changes.decide(self.away(percentage), decide)
        if moved:
            _log.info("returned the leadership of %d partition(s)", len(moved))

    async def on_reassign_node(self) -> None:
        """Carry out the reassignments that a tool wrote to `/admin/reassign_partitions`."""
        node = await self._active.store.get(paths.REASSIGN_PARTITIONS)
        if node is None:
            return
        try:
            wanted = decode_reassignments(paths.REASSIGN_PARTITIONS, node.data)
            _report(await self.reassign(wanted))
        except OttlaError as error:
            if isinstance(error, StoreError | Deposed):
                raise
            _log.error("%s", error.message)
        await self._remove(paths.REASSIGN_PARTITIONS)

    async def on_preferred_node(self) -> None:
        """Hold the elections that a tool wrote to `/admin/preferred_replica_election`."""
        node = await self._active.store.get(paths.PREFERRED_ELECTION)
        if node is None:
            return
        try:
            names = decode_partitions(paths.PREFERRED_ELECTION, node.data)
            _report(await self.elect(ElectionType.PREFERRED, names))
        except OttlaError as error:
            if isinstance(error, StoreError | Deposed):
                raise
            _log.error("%s", error.message)
        await self._remove(paths.PREFERRED_ELECTION)

    async def _remove(self, path: str) -> None:
        try:
            await self._active.store.multi([check_controller(self._active.epoch), Delete(path)])
        except NoNode:
            return
        except StoreError as error:
            if error.path == paths.CONTROLLER_EPOCH:
                raise Deposed from error
            raise

    def _unknown(self, names: Iterable[TopicPartition]) -> Outcomes:
        return {
            name: OttlaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")
            for name in names
            if self._active.context.partition(name) is None
        }


def _check_reached(
    partition: PartitionImage, live: Mapping[BrokerId, int], unreached: Collection[BrokerId]
) -> None:
    """Check that the preferred leader can be reached. Raises OttlaError."""
    preferred = partition.replicas[0]
    if preferred in unreached and preferred in live and partition.leader != preferred:
        raise OttlaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"the preferred leader {preferred} does not answer the controller; look at the "
            "network between them",
        )


def _report(outcomes: Outcomes) -> None:
    for name, error in outcomes.items():
        if error is not None:
            _log.warning("%s: %s", name, error.message)
