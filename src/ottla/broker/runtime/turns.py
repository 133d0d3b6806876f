"""Limits how much work runs at a time; users take turns, and no user gets all places.

Work that has to wait for something else gives up its place. It gets a place again before new work.
"""

from collections import Counter
from collections.abc import Callable, Hashable


class FairTurns:
    """Assigns `places` to clients; the clients of one user have at most `share` of them.

    A client takes a place or waits for one, and calls `leave` in the end. At most `begun` clients
    have started and not yet left. A started client may step aside: it then has no place, but still
    counts in its user's share.
    """

    def __init__(self, places: int, share: int, begun: int | None = None) -> None:
        self._free = places
        self._share = share
        self._begun_max = places if begun is None else begun
        # The clients that have started, each with its user. The second table has those that stepped
        # aside, each with the callback that waits for a place, or None.
        self._taken: dict[Hashable, Hashable] = {}
        self._aside: dict[Hashable, Callable[[], None] | None] = {}
        self._places_of: Counter[Hashable] = Counter()
        # The waiting clients of each user, in order of arrival. The user with the next turn is
        # first.
        self._waiting: dict[Hashable, dict[Hashable, Callable[[], None]]] = {}

    @property
    def begun(self) -> int:
        """Return the number of clients that have started and not yet left."""
        return len(self._taken)

    def take(self, user: Hashable, client: Hashable, on_place: Callable[[], None]) -> bool:
        """Take a place for `client`, which belongs to `user`.

        If it returns False, `on_place` is called later, when the client has a place.
        """
        if client in self._taken:
            return True
        if self._may_begin(user):
            self._give(user, client)
            return True
        self._waiting.setdefault(user, {})[client] = on_place
        return False

    def step_aside(self, client: Hashable) -> None:
        """Free the place of `client` until it calls `come_back`."""
        if client in self._taken and client not in self._aside:
            self._aside[client] = None
            self._free += 1
            self._call_next()

    def come_back(self, client: Hashable, on_place: Callable[[], None]) -> None:
        """Wait for a place again, ahead of clients that have not started; calls `on_place` then."""
        if client not in self._aside:
            on_place()
        elif self._free:
            self._return(client, on_place)
        else:
            # Reinserted, because clients get their places back in the order in which they ask.
            del self._aside[client]
            self._aside[client] = on_place

    def leave(self, client: Hashable) -> None:
        """Give the place back, or stop waiting for one. Does nothing if the client has none."""
        if client not in self._taken:
            for user, waiting in self._waiting.items():
                if waiting.pop(client, None) is not None:
                    if not waiting:
                        del self._waiting[user]
                    return
            return
        user = self._taken.pop(client)
        self._places_of[user] -= 1
        if not self._places_of[user]:
            del self._places_of[user]
        if client in self._aside:
            del self._aside[client]
        else:
            self._free += 1
        self._call_next()

    def _may_begin(self, user: Hashable) -> bool:
        has_room = self._free > 0 and len(self._taken) < self._begun_max
        return has_room and self._places_of[user] < self._share

    def _call_next(self) -> None:
        if not self._free:
            return
        for client, on_place in self._aside.items():
            if on_place is not None:
                self._return(client, on_place)
                return
        user = next((one for one in self._waiting if self._may_begin(one)), None)
        if user is None:
            return
        waiting = self._waiting.pop(user)
        client = next(iter(waiting))
        on_place = waiting.pop(client)
        if waiting:
            self._waiting[user] = waiting
        self._give(user, client)
        on_place()

    def _return(self, client: Hashable, on_place: Callable[[], None]) -> None:
        del self._aside[client]
        self._free -= 1
        on_place()

    def _give(self, user: Hashable, client: Hashable) -> None:
        self._free -= 1
        self._taken[client] = user
        self._places_of[user] += 1
