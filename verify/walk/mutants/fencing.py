"""Mutants of fencing: epochs, nonces, registrations, versions."""

from typing import Any

from ottla.metadata.image import PartitionImage
from ottla.replica.follower import Effects as FollowerEffects
from ottla.replica.follower import Follower
from ottla.replica.leader import Leader
from ottla.replica.term import Effects
from verify.walk.messages import State
from verify.walk.mutants.divergence import NoComparison
from verify.walk.mutants.registry import mutant
from verify.walk.node import WalkNode


class AnyEpochLeader(Leader):
    """Accepts fetches of any leader epoch."""

    def on_follower_fetch(self, *fetch: Any) -> Effects:
        broker, broker_epoch, nonce, offset, last_epoch, _, now_ms = fetch
        return super().on_follower_fetch(
            broker, broker_epoch, nonce, offset, last_epoch, self.term.leader_epoch, now_ms
        )


class AnyEpochFollower(Follower):
    """Accepts answers of any leader epoch."""

    def _take(self, nonce: int, leader_epoch: int) -> bool:
        return super()._take(nonce, self.leader_epoch)


@mutant
class NoEpochFence(WalkNode):
    """Before KIP-320: the leader epoch of a fetch or an answer is not checked (S5)."""

    leader_class = AnyEpochLeader
    follower_class = AnyEpochFollower


@mutant
class ZombieFollows(WalkNode):
    """KAFKA-6880: no epoch in fetches, and only a new follower compares ends (S5)."""

    term_class = NoComparison
    leader_class = AnyEpochLeader
    follower_class = AnyEpochFollower

    def follow(self, image: PartitionImage) -> None:
        leader = self.world.nodes[image.leader]
        _, end = leader.log.end_offset_for_epoch(self.log.last_epoch)
        if 0 <= end < self.log.log_end_offset:
            self.log.truncate_to(end)
        super().follow(image)


class AnyNonceLeader(Leader):
    """Accepts a fetch however often and late it comes."""

    def on_follower_fetch(self, *fetch: Any) -> Effects:
        remote = self.term.remotes.get(fetch[0])
        if remote is not None:
            remote.nonce = -1
        return super().on_follower_fetch(*fetch)


class AnyNonceFollower(Follower):
    """Takes any answer that fits its epoch and end."""

    def on_diverging(self, nonce: int, *answer: Any, **named: Any) -> FollowerEffects:
        self.fetch_offset = self.log.log_end_offset
        return super().on_diverging(self.nonce or 1, *answer, **named)

    def _take(self, nonce: int, leader_epoch: int) -> bool:
        self.nonce = 0
        at_end = self.fetch_offset == self.log.log_end_offset
        return at_end and leader_epoch == self.leader_epoch


@mutant
class NoNonce(WalkNode):
    """A fetch and its answer are known by offset and epoch, not by a number (S31)."""

    leader_class = AnyNonceLeader
    follower_class = AnyNonceFollower


@mutant
class TakesOlderStates(WalkNode):
    """A leader that receives an older state of its epoch goes back to it (S15)."""

    def on_state(self, message: State) -> None:
        role = self.role
        image = message.image
        if isinstance(role, Leader) and image.leader_epoch == role.term.leader_epoch:
            known = role.term.negotiation.committed
            role.term.negotiation.committed = known._replace(version=image.version - 1)
            self.version = image.version - 1
        super().on_state(message)


@mutant
class LeadsForEarlierLife(WalkNode):
    """A broker leads what an earlier registration of it was elected for."""

    def follow_state(self, image: PartitionImage) -> None:
        if image.leader == self.id:
            image = image._replace(leader_broker_epoch=self.registration.broker_epoch)
        super().follow_state(image)
