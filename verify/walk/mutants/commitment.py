"""Mutants of the high watermark: what is acknowledged and shown."""

from collections.abc import Mapping
from typing import Any

from ottla.base.ids import BrokerId
from ottla.metadata.image import PartitionImage
from ottla.replica import effects as effect
from ottla.replica.follower import Effects as FollowerEffects
from ottla.replica.follower import Follower
from ottla.replica.leader import NO_CONTACTS, Leader
from ottla.replica.remote import Remote
from ottla.replica.term import Effects, Term
from verify.walk.mutants.registry import mutant
from verify.walk.node import WalkNode


@mutant
class CommitsAtOwnEnd(Term):
    """A record is acknowledged when the leader has it."""

    def advance(self) -> Effects:
        for remote in self.required:
            remote.end = max(remote.end, self.own_end)
        return super().advance()


@mutant
class CountsCommittedIsrOnly(Term):
    """The high watermark does not wait for replicas that may be in sync already (S9)."""

    def recount(self, now_ms: int) -> None:
        super().recount(now_ms)
        isr = self.negotiation.committed.isr
        self.required = tuple(remote for remote in self.required if remote.broker_id in isr)


class TermOfProposedIsr(Term):
    """A member that is proposed out of the ISR does not count any more."""

    def recount(self, now_ms: int) -> None:
        super().recount(now_ms)
        proposal = self.negotiation.proposal
        if proposal is not None:
            isr = proposal.after.isr
            self.required = tuple(r for r in self.required if r.broker_id in isr)


class AdvancesWithShrink(Leader):
    """The high watermark moves with the proposal of a smaller ISR."""

    def on_deadline(
        self, *, now_ms: int, contact_ms: Mapping[BrokerId, int] = NO_CONTACTS
    ) -> Effects:
        return super().on_deadline(now_ms=now_ms, contact_ms=contact_ms) + self.term.advance()


@mutant
class EagerShrink(WalkNode):
    """A member that is proposed out of the ISR does not count any more (S8)."""

    term_class = TermOfProposedIsr
    leader_class = AdvancesWithShrink


@mutant
class CommitsBelowMinIsr(Term):
    """The high watermark moves however small the ISR is (S18)."""

    def recount(self, now_ms: int) -> None:
        super().recount(now_ms)
        self.blocked = False


@mutant
class CommitsDespiteEligible(Term):
    """With a lower minimum records are committed while the ELR still stands."""

    def recount(self, now_ms: int) -> None:
        super().recount(now_ms)
        self.blocked = self.under_min_isr


@mutant
class KeepsFollowers(WalkNode):
    """A leader that is elected again goes on with what it knew of followers (P23)."""

    def lead(self, image: PartitionImage) -> None:
        self.log.begin_epoch(image.leader_epoch)
        super().lead(image)
        known: dict[Any, Remote] = getattr(self, "known", {})
        role = self.role
        assert isinstance(role, Leader)
        for broker, remote in role.term.remotes.items():
            if broker in known:
                remote.end = known[broker].end
        self.carry(role.on_own_end(self.durable_end))

    def drop_role(self) -> None:
        if isinstance(self.role, Leader):
            self.known = self.role.term.remotes
        super().drop_role()


@mutant
class CountsUnflushed(WalkNode):
    """With group commit, a leader counts what it has not flushed."""

    def produce(self, value: int) -> bool:
        produced = super().produce(value)
        if produced and isinstance(self.role, Leader):
            self.carry(self.role.on_own_end(self.log.log_end_offset))
        return produced


@mutant
class FetchesUnflushed(WalkNode):
    """With group commit, a follower's fetch says that it holds what it has not flushed."""

    @property
    def durable_end(self) -> int:
        return self.log.log_end_offset if isinstance(self.role, Follower) else super().durable_end


@mutant
class ShowsEndEarly(Term):
    """A new leader shows the high watermark it knew as a follower (R-10)."""

    def latest_offset(self) -> int | None:
        return self.high_watermark


@mutant
class BelievesHighWatermark(Follower):
    """A follower shows what it does not have yet."""

    def on_appended(self) -> FollowerEffects:
        if self.leader_high_watermark <= self.high_watermark:
            return ()
        self.high_watermark = self.leader_high_watermark
        return (effect.AdvanceHighWatermark(self.high_watermark),)
