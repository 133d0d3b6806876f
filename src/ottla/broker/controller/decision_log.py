"""The controller's decisions, for the log and for `ottla why`."""

import logging
from collections.abc import Iterable

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.controller.store_writes import Planned
from ottla.controller.change import Change, How
from ottla.metadata.decisions import Decision, DecisionKind, Decisions
from ottla.metadata.image import NO_LEADER, PartitionImage

_log = logging.getLogger(__name__)


class DecisionLog:
    """Records the decisions of one controller epoch, and counts unclean elections."""

    def __init__(self, broker_id: BrokerId, clock: Clock, decisions: Decisions) -> None:
        self._broker_id = broker_id
        self._clock = clock
        self._decisions = decisions
        # Elections since the controller epoch began that may have lost records.
        self.unclean_elections = 0

    def record(self, written: Iterable[Planned]) -> None:
        """Record changes that are now in the store."""
        now_ms = self._clock.now_ms()
        for planned in written:
            self._warn(planned)
            self._decisions.record(self._decision(planned, now_ms))

    def created(self, partitions: Iterable[tuple[TopicPartition, PartitionImage]]) -> None:
        """Record partitions that the controller sees for the first time."""
        now_ms = self._clock.now_ms()
        for name, partition in partitions:
            leads = f"broker {partition.leader} leads"
            if partition.leader == NO_LEADER:
                leads = "none of these is alive to lead"
            evidence = f"replicas {list(partition.replicas)}, ISR {list(partition.isr)}; {leads}"
            self._decisions.record(
                Decision(
                    DecisionKind.CREATED,
                    name,
                    self._broker_id,
                    partition.leader_epoch,
                    f"partition {name.partition} of topic {name.topic} was created",
                    evidence,
                    None,
                    now_ms,
                )
            )

    def _warn(self, planned: Planned) -> None:
        name, change = planned.name, planned.change
        if change.how is How.UNCLEAN:
            self.unclean_elections += 1
            _log.warning(
                "unclean election of %d for %s: %s; records may be lost (%d in this term)",
                change.after.leader,
                name,
                change.evidence,
                self.unclean_elections,
            )
        elif change.after.leader == NO_LEADER:
            _log.warning("%s is offline (NoReplicaOnline): %s", name, change.evidence)

    def _decision(self, planned: Planned, now_ms: int) -> Decision:
        name, before, change = planned
        led_by = "nobody" if before.leader == NO_LEADER else str(before.leader)
        seen = f"led by {led_by} with ISR {list(before.isr)} before; {change.evidence}"
        how = "" if change.how is None else f" ({change.how})"
        return Decision(
            _kind(before, change),
            name,
            self._broker_id,
            change.after.leader_epoch,
            change.cause,
            seen + how,
            change.setting,
            now_ms,
        )


def _kind(before: PartitionImage, change: Change) -> DecisionKind:
    if change.after.leader == NO_LEADER:
        return DecisionKind.NO_LEADER
    if change.how is not None:
        return DecisionKind.ELECTED
    grown = len(change.after.isr) > len(before.isr)
    return DecisionKind.ISR_EXPANDED if grown else DecisionKind.ISR_SHRUNK
