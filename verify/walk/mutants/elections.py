"""Mutants of what the controller decides."""

from dataclasses import replace
from typing import Any

from ottla.controller import election
from ottla.controller.election import Change, How
from verify.walk.controller import CAUSE, WalkController
from verify.walk.mutants.registry import mutant


@mutant
class PrefersAnyone(WalkController):
    """The preferred replica leads though it is not in sync (S19)."""

    def preferred(self) -> Change:
        state = self.world.store.state
        first = state.replicas[0]
        if first in self.live and first not in state.isr:
            joined = state._replace(isr=(*state.isr, first))
            joined = joined._replace(elr=tuple(b for b in joined.elr if b != first))
            return Change(election.led(joined, first, self.live), How.PREFERRED, CAUSE, "")
        return super().preferred()


@mutant
class NoElr(WalkController):
    """Before KIP-966: the last one stays in the ISR, and no other can lead (S17)."""

    def settle(self) -> Change | None:
        return self._kept(super().settle())

    def drop_lossy(self, lossy: list[Any]) -> Change | None:
        return self._kept(super().settle())

    def _kept(self, change: Change | None) -> Change | None:
        state = self.world.store.state
        if change is None:
            return None
        after = change.after._replace(elr=(), last_known_elr=())
        if not after.isr or after.leader not in (*state.isr, -1):
            last = state.leader if state.leader in state.isr else state.isr[0]
            if last in self.live:
                after = election.led(state._replace(isr=(last,), elr=()), last, self.live)
            else:
                after = after._replace(isr=(last,), leader=state.leader)
                after = after._replace(leader_epoch=state.leader_epoch)
                if after == state:
                    return None
        return replace(change, after=after)


@mutant
class TrustsLossy(WalkController):
    """A broker that comes back after an unclean stop is trusted as before (R-6, R-11)."""

    def drop_lossy(self, lossy: list[Any]) -> Change | None:
        return self.settle()


@mutant
class RecoversTooEarly(WalkController):
    """The first of the last known eligible leads, whatever the others have (S17)."""

    def settle(self) -> Change | None:
        return self._first() or super().settle()

    def recover(self) -> Change | None:
        return self._first()

    def drop_lossy(self, lossy: list[Any]) -> Change | None:
        return super().drop_lossy(lossy) or self._first()

    def _first(self) -> Change | None:
        state = self.world.store.state
        back = [broker for broker in state.last_known_elr if broker in self.live]
        if state.leader != -1 or state.isr or state.elr or not back:
            return None
        alone = state._replace(isr=(back[0],))
        return Change(election.led(alone, back[0], self.live), How.LAST_KNOWN, CAUSE, "")


@mutant
class ForgetsEligible(WalkController):
    """An election among brokers believed alive drops all others (found by the walk)."""

    def settle(self) -> Change | None:
        return self._forgetful(super().settle())

    def drop_lossy(self, lossy: list[Any]) -> Change | None:
        return self._forgetful(super().drop_lossy(lossy))

    def _forgetful(self, change: Change | None) -> Change | None:
        if change is None or change.after.leader == -1:
            return change
        return replace(change, after=change.after._replace(last_known_elr=()))
