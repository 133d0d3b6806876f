"""The role that a partition's state gives a broker."""

from enum import Enum

from ottla.base.ids import BrokerId
from ottla.metadata.image import NO_LEADER, PartitionImage


class Transition(Enum):
    """How a broker reacts to a partition's state.

    A reaction is carried out completely or not at all; the new leader epoch is stored last (R-9).
    """

    # Older than the known state, or the same.
    IGNORE = "ignore"
    # A new leader epoch, led by this broker: a new `Leader`, which knows no follower's end (P23).
    LEAD = "lead"
    # A new leader epoch of another broker: a new `Follower`, which fetches from its own log end.
    FOLLOW = "follow"
    # A new leader epoch without a leader, or led by an earlier registration of this broker.
    WAIT = "wait"
    # The same leader epoch at a higher version: for `Leader.on_state`; followers ignore it.
    UPDATE = "update"
    # This broker hosts no replica (any more).
    LEAVE = "leave"


def transition(
    broker_id: BrokerId, broker_epoch: int, leader_epoch: int, version: int, image: PartitionImage
) -> Transition:
    """Decide how the broker reacts to the state `image`.

    `leader_epoch` and `version` are those of the last known state, -1 if there is none. A broker
    that was elected under an earlier registration never leads, since it may have lost records: it
    waits until the controller elects again.
    """
    if image.leader_epoch < leader_epoch:
        return Transition.IGNORE
    if image.leader_epoch == leader_epoch and image.version <= version:
        return Transition.IGNORE
    if broker_id not in image.replicas:
        return Transition.LEAVE
    if image.leader_epoch == leader_epoch:
        return Transition.UPDATE
    if image.leader == NO_LEADER:
        return Transition.WAIT
    if image.leader != broker_id:
        return Transition.FOLLOW
    return Transition.LEAD if image.leader_broker_epoch == broker_epoch else Transition.WAIT
