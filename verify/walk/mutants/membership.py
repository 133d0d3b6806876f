"""Mutants of how a leader changes the ISR."""

from ottla.metadata.image import PartitionImage
from ottla.replica import effects as effect
from ottla.replica.isr import Rejection
from ottla.replica.leader import Leader
from ottla.replica.remote import Remote
from ottla.replica.term import Effects, Term
from verify.walk.mutants.registry import mutant
from verify.walk.node import WalkNode


@mutant
class JoinsBelowEpochStart(Term):
    """Reaching the high watermark is enough to join (S10)."""

    def may_join(self, remote: Remote) -> bool:
        start, self.epoch_start = self.epoch_start, 0
        joins = super().may_join(remote)
        self.epoch_start = start
        return joins


class RemoteWithMemory(Remote):
    """Never forgets an end."""

    __slots__ = ()

    def forget_end(self) -> None:
        pass


class TermWithMemory(Term):
    """Its followers never forget an end."""

    def recount(self, now_ms: int) -> None:
        for broker in self.negotiation.committed.replicas:
            if broker != self.broker_id and broker not in self.remotes:
                self.remotes[broker] = RemoteWithMemory(broker, now_ms)
        super().recount(now_ms)


class ExpandsByMemory(Leader):
    """Proposes a follower by what is known of it, without a fetch."""

    def on_state(self, image: PartitionImage, *, now_ms: int) -> Effects:
        effects, term = super().on_state(image, now_ms=now_ms), self.term
        for remote in term.remotes.values():
            if not term.resigned and not remote.counts and term.may_join(remote):
                return effects + self._expand(remote)
        return effects


@mutant
class RemembersEnds(WalkNode):
    """A follower may join by what it held once (S11)."""

    term_class = TermWithMemory
    leader_class = ExpandsByMemory


@mutant
class RevertsOnReject(Leader):
    """A rejection ends the proposal: the maximal ISR is the committed one again (S32)."""

    def on_isr_rejected(self, nonce: int, rejection: Rejection, *, now_ms: int) -> Effects:
        negotiation = self.term.negotiation
        negotiation.proposal = None
        negotiation.maximal_isr = negotiation.committed.isr
        self.term.recount(now_ms)
        if rejection is Rejection.OUTDATED:
            return (effect.ReadState(),)
        return self.term.advance()


@mutant
class UnknownIsRefused(Leader):
    """A change whose result is unknown is taken for not made (S15)."""

    def on_isr_unknown(self, nonce: int) -> Effects:
        negotiation = self.term.negotiation
        negotiation.proposal = None
        negotiation.maximal_isr = negotiation.committed.isr
        self.term.recount(0)
        return self.term.advance()


@mutant
class UnknownIsMade(Leader):
    """A change whose result is unknown is taken for made (S15)."""

    def on_isr_unknown(self, nonce: int) -> Effects:
        proposal = self.term.negotiation.proposal
        if proposal is None or proposal.nonce != nonce:
            return ()
        return self.on_state(proposal.committed(proposal.after.version + 1), now_ms=0)
