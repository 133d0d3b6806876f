"""Mutants of when a follower is late: each counts time that must not count, or misses some."""

from collections.abc import Mapping

from ottla.base.ids import BrokerId
from ottla.replica.leader import NOT_FULL, Leader
from ottla.replica.remote import Remote
from ottla.replica.term import Effects
from verify.walk.mutants.registry import mutant


@mutant
class IdleTimeCounts(Leader):
    """A follower is late by its last fetch, though there was nothing to fetch since.

    So it was up to commit 105a32d: the first record after a quiet time emptied the ISR.
    """

    def on_grown(self, now_ms: int) -> None:
        pass


@mutant
class IdleTimeIsSilence(Leader):
    """A follower with nothing to fetch is silent, and out with the first record."""

    def _silent(
        self, behind: list[Remote], contact_ms: Mapping[BrokerId, int], now_ms: int
    ) -> dict[Remote, int]:
        longest_ms = now_ms - self.silence_ms_max
        return {r: r.contact_ms for r in behind if r.contact_ms <= longest_ms}


@mutant
class EveryAppendRenews(Leader):
    """Any record gives every follower the full time again: on a busy partition none is late."""

    def on_grown(self, now_ms: int) -> None:
        self.full_end = 0
        for remote in self.term.remotes.values():
            remote.caught_up_ms = now_ms


@mutant
class RepeatsAreGrowth(Leader):
    """A batch that a producer sends again counts as the first record after a quiet time.

    The next one, which followers do lack, then finds their time over.
    """

    def on_grown(self, now_ms: int) -> None:
        full_end, self.full_end = self.full_end, NOT_FULL
        if full_end != NOT_FULL:
            for remote in self.term.remotes.values():
                if remote.end >= full_end:
                    remote.caught_up_ms = now_ms


@mutant
class JoinsWithoutTime(Leader):
    """A follower that joins below the log's end is late by the time before it joined."""

    def _expand(self, remote: Remote) -> Effects:
        caught_up_ms = remote.caught_up_ms
        effects = super()._expand(remote)
        remote.caught_up_ms = caught_up_ms
        return effects


@mutant
class ForgetsTheTime(Leader):
    """A follower that comes back with less is late by its last fetch before it went."""

    def _forget_end(self, remote: Remote, now_ms: int) -> None:
        remote.forget_end()
