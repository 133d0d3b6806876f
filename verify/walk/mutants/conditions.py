"""Mutants of what the store requires of a write."""

from ottla.replica.isr import Rejection
from verify.walk.messages import WriteIsr, WriteState
from verify.walk.mutants.registry import mutant
from verify.walk.store import WalkStore


@mutant
class NoVersionCheck(WalkStore):
    """A leader's change is made whatever the state has become meanwhile (S15)."""

    def judge(self, message: WriteIsr) -> Rejection | None:
        change = message.change
        if change.after.leader_epoch != self.state.leader_epoch:
            return Rejection.OUTDATED
        if any(self.live.get(broker) != epoch for broker, epoch in change.joining):
            return Rejection.INELIGIBLE
        return None


@mutant
class NoBrokerEpochCheck(WalkStore):
    """A member joins though it restarted since it fetched (KIP-903, S12)."""

    def judge(self, message: WriteIsr) -> Rejection | None:
        live = self.live
        self.live = {**live, **dict(message.change.joining)}
        rejection = super().judge(message)
        self.live = live
        return rejection


@mutant
class StaleController(WalkStore):
    """A controller's write is made though another one has taken over (S14)."""

    def allows(self, message: WriteState) -> bool:
        return message.after.leader_epoch >= self.state.leader_epoch
