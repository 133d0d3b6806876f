"""The states of a group, by the names Kafka shows them with."""

from enum import StrEnum


class GroupState(StrEnum):
    """The state of a group between two assignments.

    EMPTY: no members, perhaps offsets. PREPARING_REBALANCE: members are asked to join again.
    COMPLETING_REBALANCE: all have joined, the leader's assignment is awaited. STABLE: all members
    have their assignments. DEAD: only shown, for a group that does not exist.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
