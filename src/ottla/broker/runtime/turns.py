"""Who may work now, where only a few may at a time: users take turns, and none takes all places."""

from collections import Counter
from collections.abc import Callable, Hashable


class FairTurns:
    """`places` for all, of which one user has at most `share`.

    Each who takes a place, or waits for one, calls `leave` in the end.
    """

    def __init__(self, places: int, share: int) -> None:
        self._free = places
        self._share = share
        self._taken: dict[Hashable, Hashable] = {}
        self._places_of: Counter[Hashable] = Counter()
        # By user, the one first whose turn is next; of each user in the order in which they came.
        self._waiting: dict[Hashable, dict[Hashable, Callable[[], None]]] = {}

    def take(self, user: Hashable, who: Hashable, on_place: Callable[[], None]) -> bool:
        """Take a place for `who`, of `user`. False: `on_place` is called when it has one."""
        if who in self._taken:
            return True
        if self._free and self._places_of[user] < self._share:
            self._give(user, who)
            return True
        self._waiting.setdefault(user, {})[who] = on_place
        return False

    def leave(self, who: Hashable) -> None:
        """Give the place back, or wait no longer; without either, nothing happens."""
        if who not in self._taken:
            for user, waiting in self._waiting.items():
                if waiting.pop(who, None) is not None:
                    if not waiting:
                        del self._waiting[user]
                    return
            return
        user = self._taken.pop(who)
        self._places_of[user] -= 1
        if not self._places_of[user]:
            del self._places_of[user]
        self._free += 1
        self._call_next()

    def _call_next(self) -> None:
        user = next((one for one in self._waiting if self._places_of[one] < self._share), None)
        if user is None:
            return
        waiting = self._waiting.pop(user)
        who = next(iter(waiting))
        on_place = waiting.pop(who)
        if waiting:
            self._waiting[user] = waiting
        self._give(user, who)
        on_place()

    def _give(self, user: Hashable, who: Hashable) -> None:
        self._free -= 1
        self._taken[who] = user
        self._places_of[user] += 1
