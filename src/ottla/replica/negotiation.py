"""How a leader changes its ISR in the store: one proposal at a time, settled by version.

The maximal ISR is the committed ISR and all followers that may have been added to it already. A
rejection never shrinks the maximal ISR, because an older copy of the request may still be accepted.
Only a committed state with a higher version shrinks it. To get one, the leader writes its committed
state again without a change (R-8).
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

    Invariant: maximal_isr is a superset of committed.isr; without an open proposal they are equal.
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
        # The reasons, by nonce, of all changes proposed since the committed state: the store may
        # still accept an earlier proposal than the latest.
        self._reasons: dict[int, Reason] = {}

    def propose(
        self,
        isr: tuple[BrokerId, ...],
        joining: tuple[tuple[BrokerId, int], ...],
        min_isr: int,
        reason: Reason | None = None,
    ) -> LeaderEffect:
        """Propose `isr` as the new ISR.

        Joining followers are in the maximal ISR at once; leaving ones stay in it until the change
        is committed.

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
        """Propose the committed state again, unchanged.

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
        """Replace the committed state by one of a higher version.

        Return the reason of the change if this leader proposed it, else None.
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
