"""Worlds in which one partition is busy, and the others idle for longer than followers may lag.

Brokers pause there for less than that, mostly all followers of a partition at once: whatever comes
of it, none of them may lose its place in an ISR for it. Nothing is lost that was written.
"""

from dataclasses import replace
from random import Random

from verify.simulation.worlds.profile import IDLE_KINDS, Profile, draw

IDLE_SEED_S = 60.0
# Which of the other kinds go with them, each in some worlds.
_BESIDE = {
    "pause": 2,
    "hiccup": 4,
    "kill": 1,
    "kill_leader": 1,
    "restart": 1,
    "stall": 3,
    "drop": 3,
    "slow_link": 2,
    "slow_disk": 3,
    "store_outage": 1,
    "store_cut": 1,
}


def draw_idle(seed: int | str, brokers: int | None = None) -> Profile:
    """The profile of a seed, of three brokers if nothing else is said."""
    profile = draw(seed, brokers or 3)
    chance = Random(f"{seed}/profile/idle")
    beside = {kind: weight for kind, weight in _BESIDE.items() if chance.random() < 0.4}
    return replace(
        profile,
        partitions=4,
        min_in_sync=chance.choice([1, 2]),
        producers=chance.choice([1, 2]),
        readers=chance.choice([0, 1]),
        members=chance.choice([0, 0, 1]),
        send_every_ms=chance.choice([300, 1_000, 3_000]),
        busy_share=chance.choice([0.0, 0.5, 0.8, 0.95]),
        fault_every_ms=chance.choice([1_500, 3_000, 6_000]),
        fragmentation=0.0,
        hasty_producers=0,
        fetch_wait_ms=1_000,
        poll_ms=1_000,
        idle_ms=500,
        ends_every_ms=5_000,
        weights={**IDLE_KINDS, **beside},
    )
