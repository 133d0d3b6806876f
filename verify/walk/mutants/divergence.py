"""Mutants of how a follower finds where its log parts from the leader's."""

from ottla.metadata.image import PartitionImage
from ottla.replica import effects as effect
from ottla.replica.follower import Effects as FollowerEffects
from ottla.replica.follower import Follower
from ottla.replica.term import Effects, Term
from verify.walk.mutants.registry import mutant
from verify.walk.node import WalkNode


@mutant
class TruncateToHw(WalkNode):
    """Before KIP-101: a new follower cuts its log at its own high watermark (S1, S2, S3)."""

    def follow(self, image: PartitionImage) -> None:
        self.log.truncate_to(self.saved_high_watermark)
        super().follow(image)


@mutant
class Kip101Only(Term):
    """Before KIP-279: an epoch the leader does not know is answered by the next one's start."""

    def compare(self, offset: int, last_fetched_epoch: int) -> Effects | None:
        entries = self.log.epochs.entries  # type: ignore[attr-defined]
        if last_fetched_epoch < 0 or last_fetched_epoch in [epoch for epoch, _ in entries]:
            return super().compare(offset, last_fetched_epoch)
        larger = [start for epoch, start in entries if epoch > last_fetched_epoch]
        if larger and larger[0] < offset:
            return (effect.Diverging(last_fetched_epoch, larger[0]),)
        return None if offset <= self.log.log_end_offset else effect.OUT_OF_RANGE


@mutant
class OwnEpochsIgnored(Follower):
    """A follower cuts at the leader's end, not where the epoch ends in its own log (S4)."""

    def on_diverging(
        self, nonce: int, leader_epoch: int, epoch: int, end_offset: int, *, now_ms: int
    ) -> FollowerEffects:
        if not self._take(nonce, leader_epoch) or end_offset >= self.fetch_offset:
            return ()
        self.high_watermark = min(self.high_watermark, end_offset)
        return (effect.TruncateTo(end_offset),)


@mutant
class NoComparison(Term):
    """A leader serves from any offset it has, whatever the follower's last epoch (S2)."""

    def compare(self, offset: int, last_fetched_epoch: int) -> Effects | None:
        log = self.log
        inside = log.log_start_offset <= offset <= log.log_end_offset
        return None if inside else effect.OUT_OF_RANGE


@mutant
class RestartsWhereLogsPart(Follower):
    """A follower that diverges drops everything, with the committed records it holds."""

    def on_diverging(
        self, nonce: int, leader_epoch: int, epoch: int, end_offset: int, *, now_ms: int
    ) -> FollowerEffects:
        if not self._take(nonce, leader_epoch):
            return ()
        self.high_watermark = 0
        return (effect.RestartAt(self.log.log_start_offset),)


@mutant
class VouchesForDeleted(Term):
    """A leader lets a follower keep records of a time whose own ones it has deleted."""

    def compare(self, offset: int, last_fetched_epoch: int) -> Effects | None:
        log = self.log
        if 0 <= last_fetched_epoch < log.first_epoch:
            _, end = log.end_offset_for_epoch(last_fetched_epoch)
            if end < offset:
                return (effect.Diverging(last_fetched_epoch, end),)
            return None if log.log_start_offset <= offset else effect.OUT_OF_RANGE
        return super().compare(offset, last_fetched_epoch)
