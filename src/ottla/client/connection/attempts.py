"""Delays between attempts to reach a broker, and the time limit of the first contact."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from ottla.client.common.errors import BootstrapFailed, ClientError
from ottla.client.connection.view import Address


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


_log = logging.getLogger(__name__)


class FirstContact:
    """The contact state of a `Cluster`."""

    def __init__(self, bootstrap: Iterable[Address], timeout_ms: int) -> None:
        self._where = ", ".join(map(str, bootstrap))
        self._timeout_s = timeout_ms / 1000
        self._is_made = False
        self._began_s: float | None = None
        self._failure: ClientError | None = None
        self._has_warned = False

    def made(self) -> None:
        """Note that a broker has answered a request."""
        self._is_made = True

    def limit_s(self, limit_s: float) -> float:
        """Return how long opening a connection may take, at most `limit_s`."""
        return limit_s if self._is_made else min(limit_s, self._timeout_s)

    def begin(self, now_s: float) -> None:
        """Note the begin of an attempt; the time limit counts from the first one."""
        if self._began_s is None:
            self._began_s = now_s

    def failed(self, failure: ClientError, now_s: float) -> ClientError:
        """Return the error to raise for a failed attempt; after the time limit it is final."""
        if self._is_made or self._began_s is None:
            return failure
        self._failure = failure
        if now_s - self._began_s < self._timeout_s:
            return failure
        return BootstrapFailed(
            f"no broker answered at {self._where} within bootstrap_timeout_ms="
            f"{self._timeout_s * 1000:.0f}: {failure.message}"
        )

    def about_to_retry(self) -> None:
        """Warn, the first time, that no address has answered yet."""
        if self._failure is None or self._is_made or self._has_warned:
            return
        self._has_warned = True
        _log.warning(
            "no broker has answered yet at %s: %s; it is tried again for up to %.1f s",
            self._where,
            self._failure.message,
            self._timeout_s,
        )
