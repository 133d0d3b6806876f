"""Two laws about leaving an ISR, judged from all appends and fetches, not by the leader's state.

*No needless shrink* (R-12): a leader proposes a follower out only if the follower did not hold all
that the leader had for `replica.lag.time.max.ms`, or, where enough remain, if it lacked records and
sent no fetch for the time of a dead broker or reported a full disk. *No late member*: a leader that
looks proposes every follower out that was late for so long.

A follower held all at a moment if its last fetch before said so and nothing was appended between
them. It held all at a fetch also where its next fetch reached the log's end of that moment: a busy
leader is always ahead.
"""

from collections.abc import Collection
from dataclasses import dataclass

Id = int


@dataclass(frozen=True, slots=True)
class FollowerLimits:
    """Of the leader: `replica.lag.time.max.ms`, how long is silence, and `min.insync.replicas`."""

    lag_ms: int
    silence_ms: int
    min_isr: int


class _Follower:
    __slots__ = (
        "caught_ms",
        "contact_ms",
        "fetched_ms",
        "growths",
        "held_all",
        "is_full",
        "leader_end",
    )

    def __init__(self, now_ms: int) -> None:
        # When it held all, by its fetches up to the one before the last.
        self.caught_ms = now_ms
        self.contact_ms = now_ms
        # Of the last fetch: when, the log's end then, whether the follower held all of it, and how
        # often the log had grown before. `leader_end` is -1 where what it holds is not known.
        self.fetched_ms = now_ms
        self.leader_end = -1
        self.held_all = False
        self.growths = 0
        # Whether its last fetch reported a full disk.
        self.is_full = False


class TermSeen:
    """One leader epoch, as an observer of all its appends and fetches sees it."""

    def __init__(self, log_end: int, followers: Collection[Id], now_ms: int) -> None:
        self._end = log_end
        # When the log grew, in this leader epoch.
        self._growths_ms: list[int] = []
        self._followers = {follower: _Follower(now_ms) for follower in followers}

    # ------------------------------------------------------------ what happens

    def on_end(self, log_end: int, now_ms: int) -> None:
        """The log ends there: after every append."""
        if log_end > self._end:
            self._end = log_end
            self._growths_ms.append(now_ms)

    def on_contact(self, follower: Id, now_ms: int) -> None:
        """A fetch of the follower arrived, whatever it asks for."""
        if follower in self._followers:
            seen = self._followers[follower]
            seen.contact_ms = max(seen.contact_ms, now_ms)

    def on_room(self, follower: Id, now_ms: int, *, is_full: bool) -> None:
        """A fetch of the follower arrived that reports whether its disk is full."""
        self._followers.setdefault(follower, _Follower(now_ms)).is_full = is_full

    def is_full(self, follower: Id) -> bool:
        """Whether the last fetch of the follower reported a full disk."""
        return follower in self._followers and self._followers[follower].is_full

    def on_fetch(self, follower: Id, offset: int, now_ms: int) -> None:
        """A fetch was accepted: the follower holds everything below `offset`."""
        seen = self._followers.setdefault(follower, _Follower(now_ms))
        seen.caught_ms = self._caught_ms(seen, now_ms)
        if seen.leader_end >= 0 and offset >= seen.leader_end:
            seen.caught_ms = max(seen.caught_ms, seen.fetched_ms)
        seen.fetched_ms = seen.contact_ms = now_ms
        seen.leader_end = self._end
        seen.held_all = offset >= self._end
        seen.growths = len(self._growths_ms)

    def on_forgotten(self, follower: Id, now_ms: int) -> None:
        """What the follower holds is not known any more: it diverges, or left the ISR."""
        seen = self._followers.setdefault(follower, _Follower(now_ms))
        seen.caught_ms = self._caught_ms(seen, now_ms)
        seen.leader_end = -1
        seen.held_all = False

    def on_joining(self, follower: Id, now_ms: int) -> None:
        """The follower is proposed for the ISR: its lag is measured anew."""
        self._followers[follower].caught_ms = now_ms

    # ------------------------------------------------------------ what is to be said of it

    def needless(
        self, isr: Collection[Id], leaving: Collection[Id], limits: FollowerLimits, now_ms: int
    ) -> list[str]:
        """What is wrong with proposing `leaving` out of `isr`."""
        wrongs = []
        for follower in sorted(leaving):
            seen = self._followers[follower]
            caught_ms = self._caught_ms(seen, now_ms)
            if now_ms - caught_ms >= limits.lag_ms:
                continue
            told = f"caught up {now_ms - caught_ms} ms ago, heard of {now_ms - seen.contact_ms}"
            is_in_contact = now_ms - max(caught_ms, seen.contact_ms) < limits.silence_ms
            if is_in_contact and not seen.is_full:
                wrongs.append(f"needless shrink: {follower} leaves {list(isr)}: {told} ms ago")
            elif len(isr) - len(leaving) < limits.min_isr:
                wrongs.append(f"needless shrink: {follower} leaves too few of {list(isr)}: {told}")
        return wrongs

    def late(self, isr: Collection[Id], limits: FollowerLimits, now_ms: int) -> list[Id]:
        """Members that a leader must propose out if it looks now."""
        return [
            follower
            for follower, seen in self._followers.items()
            if follower in isr and now_ms - self._caught_ms(seen, now_ms) >= limits.lag_ms
        ]

    def _caught_ms(self, seen: _Follower, now_ms: int) -> int:
        if not seen.held_all:
            return seen.caught_ms
        if seen.growths == len(self._growths_ms):
            return now_ms
        return max(seen.caught_ms, self._growths_ms[seen.growths])
