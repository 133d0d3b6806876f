"""Faults of a cluster: one finding for each trouble and cause."""

from dataclasses import dataclass
from enum import StrEnum

from ottla.base.ids import TopicPartition


class Trouble(StrEnum):
    """The kinds of trouble, in the order of their listing."""

    DIRECTORY_OFFLINE = "log directory offline"
    DISK_FULL = "disk full"
    DISK_ALMOST_FULL = "disk almost full"
    UNDER_REPLICATED = "under-replicated"
    OFFLINE = "offline"
    UNDER_MIN_ISR = "under min ISR"
    AT_MIN_ISR = "at min ISR"
    TOO_FEW_REPLICAS = "too few replicas"
    NOT_COMPACTED = "not compacted"
    NO_CONTROLLER = "no controller"


@dataclass(frozen=True, slots=True)
class Finding:
    """Partitions with one trouble of one cause, and the remedy. Sentences without full stop."""

    trouble: Trouble
    cause: str
    remedy: str
    partitions: tuple[TopicPartition, ...]
