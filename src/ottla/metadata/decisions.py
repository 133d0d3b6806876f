"""Remembers why partitions are in their state: recent decisions, read by `ottla why`.

A decision of a core is a change of the ISR, an election, a truncation, or a refusal. It has the
cause, the evidence, and the setting that was decisive. `Decisions` keeps the latest of each
partition, in memory only.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from ottla.base.ids import BrokerId, TopicPartition


class DecisionKind(StrEnum):
    """The kind of a decision. The command line prints these texts."""

    CREATED = "partition created"
    ISR_SHRUNK = "isr shrunk"
    ISR_EXPANDED = "isr expanded"
    ISR_REFUSED = "isr change refused"
    ELECTED = "leader elected"
    NO_LEADER = "no leader"
    RESIGNED = "leader resigned"
    TRUNCATED = "log truncated"
    RESTARTED = "log restarted"
    FENCED = "fetch refused"
    DELETED_UNREAD = "records deleted unread"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision about one partition.

    `cause` is what happened, `evidence` the observed state, `setting` the name and value of the
    decisive setting, None if there is none. `broker_id` made the decision.
    """

    kind: DecisionKind
    partition: TopicPartition
    broker_id: BrokerId
    leader_epoch: int
    cause: str
    evidence: str
    setting: str | None
    at_ms: int


class Decisions:
    """The latest decisions of each partition, in order of time.

    Holds at most `per_partition` decisions for each of at most `partitions` partitions. Beyond
    that, it drops the partition whose latest decision is the oldest.
    """

    def __init__(self, *, per_partition: int = 32, partitions: int = 4096) -> None:
        assert per_partition > 0
        assert partitions > 0
        self._per_partition = per_partition
        self._partitions = partitions
        self._held: OrderedDict[TopicPartition, deque[Decision]] = OrderedDict()

    def record(self, decision: Decision) -> None:
        """Remember a decision, and drop the oldest if there are too many."""
        held = self._held.get(decision.partition)
        if held is None:
            held = self._held[decision.partition] = deque(maxlen=self._per_partition)
            if len(self._held) > self._partitions:
                self._held.popitem(last=False)
        else:
            self._held.move_to_end(decision.partition)
        held.append(decision)

    def of(self, partition: TopicPartition) -> tuple[Decision, ...]:
        """The decisions about a partition, oldest first."""
        return tuple(self._held.get(partition, ()))

    def forget(self, topic: str) -> None:
        """Drop the decisions about a topic that was deleted."""
        for partition in [p for p in self._held if p.topic == topic]:
            del self._held[partition]


_log = logging.getLogger(__name__)


class Recorder:
    """Remembers decisions for `ottla why`, and logs them."""

    def __init__(self, decisions: Decisions, now_ms: Callable[[], int]) -> None:
        self._decisions = decisions
        self._now_ms = now_ms

    def record(self, decision: Decision) -> None:
        """Remember a decision, and log it."""
        # The cores use the monotonic clock; people and other brokers use the wall clock.
        self._decisions.record(replace(decision, at_ms=self._now_ms()))
        _log.info(
            "%s: %s: %s (%s)",
            decision.partition,
            decision.kind.value,
            decision.cause,
            decision.evidence,
        )
