"""Worlds with transactions whose troubles are aimed at the instant of a decision.

Small and short, as nearly every trouble hits: for rules that matter for milliseconds only.
"""

from dataclasses import replace
from random import Random

from verify.simulation.worlds.profile import AIMED_KINDS, Profile, draw

AIMED_SEED_S = 12.0
# Which of the other kinds go with them.
_BESIDE = {"slow_disk": 6, "kill_leader": 2, "kill_copier": 2}


def draw_aimed(seed: int | str, brokers: int | None = None) -> Profile:
    """The profile of a seed, of three brokers if nothing else is said."""
    profile = draw(seed, brokers or 3)
    chance = Random(f"{seed}/profile/aimed")
    kinds = {**AIMED_KINDS, **_BESIDE}
    weights = {kind: weight if chance.random() < 0.6 else 0 for kind, weight in kinds.items()}
    if not any(weights[kind] for kind in AIMED_KINDS):
        weights["kill_decided"] = 1
    return replace(
        profile,
        partitions=2,
        flush_policy="group",
        fragmentation=0.0,
        session_ms=1_500,
        segment_ms=7 * 86_400_000,
        producers=1,
        readers=0,
        members=0,
        hasty_producers=0,
        send_every_ms=100,
        record_bytes_max=30,
        ends_every_ms=2_000,
        fault_every_ms=chance.choice([500, 1_000, 2_000]),
        # One alone shares its partitions with its twin.
        copiers=chance.choice([1, 1, 2]),
        transaction_ms=chance.choice([3_000, 10_000]),
        transaction_version=chance.choice([1, 2]),
        # Half of the records that are visible too early must never be.
        gives_up=0.5,
        poll_ms=200,
        idle_ms=50,
        weights=weights,
    )
