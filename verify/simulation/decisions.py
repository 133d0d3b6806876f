"""The faults of a run: drawn from the seed, recorded, and replayable.

A decision carries all it needs, its end included, so that a run without it makes sense, too: that
is what shrinking needs. Its target is looked up when it is due (the leader then).
"""

import json
from collections.abc import Sequence
from random import Random
from typing import NamedTuple


class Choice(NamedTuple):
    """At `at_ms`, do `kind` to `subject` with `amount`, for `for_ms`. All small numbers."""

    at_ms: int
    kind: str
    subject: int = 0
    amount: int = 0
    for_ms: int = 0


class ChoiceSource:
    """Draws from a seed, or replays what was recorded."""

    def __init__(self, seed: int | str, recorded: Sequence[Choice] | None = None) -> None:
        self._chance = Random(f"{seed}/decisions")
        self._recorded = recorded

    def decisions(
        self, weights: dict[str, int], *, until_ms: int, mean_interval_ms: int
    ) -> list[Choice]:
        """Decisions in the order of their times, of kinds in proportion to `weights`."""
        if self._recorded is not None:
            return sorted(self._recorded)
        chance = self._chance
        kinds = [kind for kind, weight in weights.items() if weight > 0]
        made: list[Choice] = []
        at_ms = 0.0
        while kinds:
            at_ms += chance.expovariate(1 / mean_interval_ms)
            if at_ms >= until_ms:
                break
            (kind,) = chance.choices(kinds, [weights[kind] for kind in kinds])
            for_ms = int(min(chance.expovariate(1 / 1_500), 8_000)) + 1
            made.append(
                Choice(int(at_ms), kind, chance.randrange(1 << 10), chance.randrange(100), for_ms)
            )
        return made


def to_json(decisions: Sequence[Choice]) -> str:
    """One line, to be kept with a seed."""
    return json.dumps([list(decision) for decision in decisions], separators=(",", ":"))


def from_json(text: str) -> list[Choice]:
    """What `to_json` wrote."""
    return [Choice(*fields) for fields in json.loads(text)]
