"""Checks one leader epoch of the walk by the laws of `verify.punctuality`."""

from ottla.replica import effects as effect
from ottla.replica.isr import IsrChange
from ottla.replica.leader import Leader
from verify.punctuality import FollowerLimits, TermSeen
from verify.walk.messages import FollowerFetch
from verify.walk.violation import Violation


class PunctualWatch:
    """Knows every append and every fetch that arrived. Raises Violation."""

    def __init__(self, role: Leader, now_ms: int) -> None:
        self._role = role
        self._term = term = role.term
        followers = [b for b in term.negotiation.committed.replicas if b != term.broker_id]
        self._seen = TermSeen(term.log.log_end_offset, followers, now_ms)
        # The registration of each follower that fetched last.
        self._registered: dict[int, int] = {}

    @property
    def is_free(self) -> bool:
        """Whether the leader may propose a change: none is open, none is to be tried again."""
        negotiation = self._term.negotiation
        return not (self._term.resigned or negotiation.proposal or negotiation.retry_at_ms)

    def on_appended(self, now_ms: int) -> None:
        """The leader appended."""
        self._seen.on_end(self._term.log.log_end_offset, now_ms)

    def on_fetch(self, fetch: FollowerFetch, answer: effect.LeaderEffect, now_ms: int) -> None:
        """A fetch arrived, and will be answered so."""
        is_accepted = isinstance(answer, effect.ServeFrom)
        is_another_past = isinstance(answer, effect.Diverging) or answer in effect.OUT_OF_RANGE
        if not is_accepted and not is_another_past:
            return
        if self._registered.get(fetch.source) != fetch.broker_epoch or not is_accepted:
            self._registered[fetch.source] = fetch.broker_epoch
            self._seen.on_forgotten(fetch.source, now_ms)
        if is_accepted:
            self._seen.on_fetch(fetch.source, fetch.offset, now_ms)

    def on_proposal(self, change: IsrChange, now_ms: int) -> None:
        """The leader asks for a change of the ISR."""
        isr = self._term.negotiation.committed.isr
        leaving = [broker for broker in isr if broker not in change.after.isr]
        for wrong in self._seen.needless(isr, leaving, self._limits, now_ms):
            raise Violation(wrong)
        for broker, _ in change.joining:
            self._seen.on_joining(broker, now_ms)

    def on_looked(self, now_ms: int) -> None:
        """The leader has looked at its followers, and was free to propose a change."""
        negotiation = self._term.negotiation
        proposal = negotiation.proposal
        kept = negotiation.committed.isr if proposal is None else proposal.after.isr
        late = self._seen.late(kept, self._limits, now_ms)
        if late:
            raise Violation(f"late member: the leader looked, and {late} stay in {list(kept)}")

    @property
    def _limits(self) -> FollowerLimits:
        role = self._role
        return FollowerLimits(role.lag_ms_max, role.silence_ms_max, role.term.min_isr)
