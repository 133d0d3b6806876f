"""The leader's changes of its ISR in the store: one at a time, settled by version.

The maximal ISR is the committed one with every follower that may be in it already. A rejection
never shrinks it: an older copy of the same request may still be accepted. Only a committed state
with a higher version does; to get one, the leader makes a write that changes nothing (R-8).
"""

from ottla.base.ids import BrokerId
from ottla.metadata.image import PartitionImage
from ottla.replica.effects import LeaderEffect, ProposeIsr, ReadState
from ottla.replica.isr import IsrChange, Rejection, isr_change
from ottla.replica.reasons import Reason
from ottla.replica.registration import Registration

# The pause between two attempts to settle, after the first one was rejected.
RETRY_MS = 100


class Negotiation:
    """The committed state, the proposed change, and the maximal ISR.

    Invariant: maximal_isr is a superset of committed.isr, and equal to it when nothing is open.
    """

    __slots__ = (
        "_reading",
        "_reasons",
        "committed",
        "maximal_isr",
        "proposal",
        "registration",
        "retry_at_ms",
    )

    def __init__(self, registration: Registration, committed: PartitionImage) -> None:
        self.registration = registration
        self.committed = committed
        self.maximal_isr = committed.isr
        # Invariant: while a proposal is open, another is made only to settle it.
        self.proposal: IsrChange | None = None
        self.retry_at_ms: int | None = None
        self._reading = False
        # By nonce, the reason of each change proposed since the committed state: the store may
        # still accept one older than the last.
        self._reasons: dict[int, Reason] = {}

    def propose(
        self,
        isr: tuple[BrokerId, ...],
        joining: tuple[tuple[BrokerId, int], ...],
        min_isr: int,
        reason: Reason | None = None,
    ) -> LeaderEffect:
        """Propose `isr`.

        The maximal ISR gains joining followers at once; it loses leaving ones once stored.

        `reason` is kept for the decision that is recorded once the change is made.
        """
        nonce = self.registration.next_nonce()
        if reason is not None:
            self._reasons[nonce] = reason
        change = isr_change(self.committed, isr, joining, min_isr, nonce)
        self.proposal = change
        self.retry_at_ms = None
        added = tuple(broker for broker in isr if broker not in self.maximal_isr)
        self.maximal_isr += added
        return ProposeIsr(change)

    def settle(self, min_isr: int) -> LeaderEffect:
        """Write the committed state again.

        The higher version makes older requests in flight fail.
        """
        return self.propose(self.committed.isr, (), min_isr)

    def on_rejected(
        self, nonce: int, rejection: Rejection, min_isr: int, now_ms: int
    ) -> tuple[LeaderEffect, ...]:
        """Act on a rejected change. An answer to an older change is ignored (S32)."""
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
        """Read the state, as it is unknown whether the store made the change (S15)."""
        proposal = self.proposal
        if proposal is None or proposal.nonce != nonce:
            return ()
        return self._read()

    def on_unchanged(self, version: int, min_isr: int) -> tuple[LeaderEffect, ...]:
        """Act on a state that was read and whose version is not above the known one."""
        if not self._reading:
            return ()
        if version < self.committed.version:
            return self._read()
        # The change was not made when the state was read, but its request may still be in flight.
        self._reading = False
        return (self.settle(min_isr),)

    def on_committed(self, image: PartitionImage) -> Reason | None:
        """Adopt a state of a higher version.

        Return the reason for the change, None if it was not ours.
        """
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
