"""How long to wait before trying again: doubling, with a little chance in it."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits from `first_ms` doubling up to `most_ms`, each spread by a fifth either way.

    The spread keeps many clients that lost the same broker from coming back in step.
    """

    first_ms: int = 100
    most_ms: int = 1_000

    def delay_s(self, attempt: int, chance: Random) -> float:
        """Seconds to wait after failed attempt number `attempt` (from 0)."""
        assert attempt >= 0
        plain_ms = min(self.most_ms, self.first_ms << min(attempt, 20))
        return plain_ms * (0.8 + 0.4 * chance.random()) / 1000
