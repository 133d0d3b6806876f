"""Makes a failing run small: fewer decisions, smaller numbers, the same kind of wrong.

A seed cannot shrink; the decisions written down can. Removing one leaves the others as they are.
"""

from collections.abc import Callable, Sequence

from verify.simulation.decisions import Choice

# Whether a run with these decisions still goes wrong in the same way.
Fails = Callable[[list[Choice]], bool]

_SIMPLER: tuple[Callable[[Choice], Choice], ...] = (
    lambda decision: decision._replace(amount=0),
    lambda decision: decision._replace(subject=0),
    lambda decision: decision._replace(for_ms=decision.for_ms // 4),
)


class Shrinker:
    """Tries smaller lists as long as `fails`, at most `attempts_max` times."""

    def __init__(self, fails: Fails, attempts_max: int = 200) -> None:
        self._fails = fails
        self.attempts_left = attempts_max

    def shrink(self, decisions: Sequence[Choice]) -> list[Choice]:
        """The smallest failing list found; `decisions` is known to fail."""
        found = self._cut_tail(sorted(decisions))
        found = self._remove_chunks(found)
        return self._simplify(found)

    def _try(self, candidate: list[Choice]) -> bool:
        if self.attempts_left <= 0:
            return False
        self.attempts_left -= 1
        return self._fails(candidate)

    def _cut_tail(self, decisions: list[Choice]) -> list[Choice]:
        """What comes after the wrong is not needed for it."""
        low, high = 0, len(decisions)
        while low < high:
            middle = (low + high) // 2
            if self._try(decisions[:middle]):
                high = middle
            elif self.attempts_left:
                low = middle + 1
            else:
                break
        return decisions[:high]

    def _remove_chunks(self, decisions: list[Choice]) -> list[Choice]:
        """Delta debugging: halves first, single decisions last."""
        size = max(1, len(decisions) // 2)
        while decisions:
            start, removed = 0, False
            while start < len(decisions):
                candidate = decisions[:start] + decisions[start + size :]
                if self._try(candidate):
                    decisions, removed = candidate, True
                else:
                    start += size
            if size == 1 and not removed:
                break
            size = max(1, size // 2)
            if not self.attempts_left:
                break
        return decisions

    def _simplify(self, decisions: list[Choice]) -> list[Choice]:
        """Zero what may be zero, halve what may be shorter."""
        for number in range(len(decisions)):
            for simplify in _SIMPLER:
                simpler = simplify(decisions[number])
                candidate = [*decisions[:number], simpler, *decisions[number + 1 :]]
                if simpler != decisions[number] and self._try(candidate):
                    decisions = candidate
        return decisions
