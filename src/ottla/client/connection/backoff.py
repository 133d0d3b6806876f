"""Delays between attempts: doubling, with a random part."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `first_ms` up to `most_ms`, each varied by up to a fifth.

    The variation keeps clients that lost the same broker from reconnecting at the same time.
    """

    first_ms: int = 100
    most_ms: int = 1_000

    def delay_s(self, attempt: int, chance: Random) -> float:
        """Return the seconds to wait after failed attempt number `attempt` (from 0)."""
        assert attempt >= 0
        plain_ms = min(self.most_ms, self.first_ms << min(attempt, 20))
        return plain_ms * (0.8 + 0.4 * chance.random()) / 1000
