"""The leader's talk with the store about its ISR: one change at a time, settled by version.

The maximal ISR is the committed one and whoever might be in it already. It never shrinks by
a rejection: an older copy of the same request may still be accepted. Only a committed state
with a higher version lowers it; to get one, a write that changes nothing is made (R-8).
"""

from ottla.base.ids import BrokerId
from ottla.metadata.image import PartitionImage
from ottla.replica.effects import LeaderEffect, ProposeIsr, ReadState
from ottla.replica.isr import IsrChange, Rejection, isr_change
from ottla.replica.reasons import Reason
from ottla.replica.standing import Standing

# Between two attempts to settle, where the first was rejected as well.
RETRY_MS = 100


class Negotiation:
    """Which state is committed, what is proposed, and who might be in sync.

    Invariant: maximal_isr is a superset of committed.isr, and equal to it when nothing is open.
    """

    __slots__ = (
        "_reading",
        "_reasons",
        "committed",
        "maximal_isr",
        "proposal",
        "retry_at_ms",
        "standing",
    )

    def __init__(self, standing: Standing, committed: PartitionImage) -> None:
        self.standing = standing
        self.committed = committed
        self.maximal_isr = committed.isr
        # Invariant: while one is there, no other is made except to settle it.
        self.proposal: IsrChange | None = None
        self.retry_at_ms: int | None = None
        self._reading = False
        # Why each change was proposed, by nonce, since the committed state. An older proposal than
        # the last one may be the one that the store accepts.
        self._reasons: dict[int, Reason] = {}

    def propose(
        self,
        isr: tuple[BrokerId, ...],
        joining: tuple[tuple[BrokerId, int], ...],
        min_isr: int,
        reason: Reason | None = None,
    ) -> LeaderEffect:
        """Ask for `isr`. Who is to join counts from now on, who is to leave until it has left.

        `reason` is kept, so that what is told once the change is made is what decided it.
        """
        nonce = self.standing.next_nonce()
        if reason is not None:
            self._reasons[nonce] = reason
        change = isr_change(self.committed, isr, joining, min_isr, nonce)
        self.proposal = change
        self.retry_at_ms = None
        added = tuple(broker for broker in isr if broker not in self.maximal_isr)
        self.maximal_isr += added
        return ProposeIsr(change)

    def settle(self, min_isr: int) -> LeaderEffect:
        """Write the committed state again: its new version ends what copies are on their way."""
        return self.propose(self.committed.isr, (), min_isr)

    def on_rejected(
        self, nonce: int, rejection: Rejection, min_isr: int, now_ms: int
    ) -> tuple[LeaderEffect, ...]:
        """The store did not make a change. The answer to an older one says nothing (S32)."""
        proposal = self.proposal
        if proposal is None or proposal.nonce != nonce:
            return ()
        if rejection is Rejection.OUTDATED:
            return self._read()
        if proposal.joining or proposal.after.isr != self.committed.isr:
            return (self.settle(min_isr),)
        self.retry_at_ms = now_ms + RETRY_MS
        return ()

    def on_unknown(self, nonce: int) -> tuple[LeaderEffect, ...]:
        """Whether the store made a change is not known: look (S15)."""
        proposal = self.proposal
        if proposal is None or proposal.nonce != nonce:
            return ()
        return self._read()

    def on_unchanged(self, version: int, min_isr: int) -> tuple[LeaderEffect, ...]:
        """The store was looked at and is not beyond what was known."""
        if not self._reading:
            return ()
        if version < self.committed.version:
            return self._read()
        # Not made when we looked, and yet it may be under way.
        self._reading = False
        return (self.settle(min_isr),)

    def on_committed(self, image: PartitionImage) -> Reason | None:
        """Take over a state of a higher version; why we proposed it, None if it is not ours."""
        assert image.version > self.committed.version
        reason = self._reasons.get(image.nonce)
        self._reasons.clear()
        self.committed = image
        self.maximal_isr = image.isr
        self.proposal = None
        self.retry_at_ms = None
        self._reading = False
        return reason

    def _read(self) -> tuple[LeaderEffect, ...]:
        self._reading = True
        return (ReadState(),)
