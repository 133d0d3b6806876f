"""What a partition's state makes of a broker that hears of it."""

from enum import Enum

from ottla.base.ids import BrokerId
from ottla.metadata.image import NO_LEADER, PartitionImage


class Transition(Enum):
    """What to do about a state. Done wholly or not at all, the new epoch noted last (R-9)."""

    # Older than what is known, or known already.
    IGNORE = "ignore"
    # A new term, led by this broker: a new `Leader`, which knows of no follower's end (P23).
    LEAD = "lead"
    # A new term of another: a new `Follower`, which goes on from its own end.
    FOLLOW = "follow"
    # A new term without a leader, or led by an earlier life of this broker: neither role.
    WAIT = "wait"
    # The same term at a higher version: tell `Leader.on_state`; a follower has nothing to do.
    UPDATE = "update"
    # This broker is no replica (any more).
    LEAVE = "leave"


def transition(
    broker_id: BrokerId, broker_epoch: int, leader_epoch: int, version: int, image: PartitionImage
) -> Transition:
    """`leader_epoch` and `version` are those of the state acted on last; -1 where there is none.

    A broker never leads what an earlier registration of it was elected for, which may have
    had records that are lost now: it waits for the controller to notice.
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
