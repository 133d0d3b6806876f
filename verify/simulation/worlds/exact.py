"""Worlds with transactions: programs that copy a topic to another exactly once.

Drawn from a stream of their own, on top of what a seed draws elsewhere.
"""

from dataclasses import replace
from random import Random

from verify.simulation.worlds.profile import COPIER_KINDS, Profile, draw


def draw_exact(seed: int | str, brokers: int | None = None) -> Profile:
    """The profile of a seed, with copiers and troubles of theirs."""
    profile = draw(seed, brokers)
    chance = Random(f"{seed}/profile/exact")
    weights = dict(profile.weights)
    for kind, weight in COPIER_KINDS.items():
        weights[kind] = weight * chance.randrange(1, 5) if chance.random() < 0.6 else 0
    # A broker whose clock is hours behind refuses the records of copiers for good.
    weights["clock_jump"] = 0
    version = chance.choice([2, 2, 2, 1])
    return replace(
        profile,
        producers=1,
        readers=0,
        members=0,
        hasty_producers=0,
        send_every_ms=chance.choice([100, 300, 1_000]),
        record_bytes_max=30,
        ends_every_ms=2_000,
        fault_every_ms=chance.choice([700, 1_500, 3_000, 8_000]),
        copiers=chance.choice([1, 2, 2, 3]),
        transaction_ms=chance.choice([3_000, 10_000, 30_000]),
        transaction_version=version,
        # A late request of a client that keeps its epoch may end its next transaction: KIP-890.
        late_requests=version == 2 and chance.random() < 0.7,
        poll_ms=chance.choice([200, 1_000]),
        idle_ms=chance.choice([50, 200, 1_000]),
        weights=weights,
    )
