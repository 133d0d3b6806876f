"""Records the decisions of the leaders and followers on this broker."""

import logging
from dataclasses import replace

from ottla.base.clock import Clock
from ottla.metadata.decisions import Decision, Decisions

_log = logging.getLogger(__name__)


class Recorder:
    """Remembers decisions for `ottla why`, and logs them."""

    def __init__(self, decisions: Decisions, clock: Clock) -> None:
        self._decisions = decisions
        self._clock = clock

    def record(self, decision: Decision) -> None:
        """Remember a decision, and log it."""
        # The cores use the monotonic clock; people and other brokers use the wall clock.
        self._decisions.record(replace(decision, at_ms=self._clock.now_ms()))
        _log.info(
            "%s: %s: %s (%s)",
            decision.partition,
            decision.kind.value,
            decision.cause,
            decision.evidence,
        )
