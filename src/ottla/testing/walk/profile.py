"""What a seed is about: swarm testing draws how often each thing happens."""

import random
from dataclasses import dataclass

# How often each kind of step is taken, of 1000, before a seed makes some rarer or commoner.
WEIGHTS = {
    "deliver": 300,
    "fetch": 250,
    "produce": 60,
    "tick": 14,
    "plan": 80,
    "doubt": 40,
    "register": 60,
    "tell": 30,
    "prefer": 16,
    "fail_over": 4,
    "sync": 10,
    "kill": 6,
    "power": 4,
    "restart": 50,
    "consume": 10,
}
REPAIRS = ("plan", "register", "restart", "tell", "sync")
MOVES = {"move": 6}
DELETES = {"delete": 6}
MINIMUMS = {"minimum": 8}
BLACKOUTS = {"blackout": 3}


@dataclass(frozen=True, slots=True)
class Profile:
    """What may happen in one run."""

    group_commit: bool
    brokers: int
    replicas: tuple[int, ...]
    # How many power cuts may take unsynced records: one less than copies of what is committed.
    power_cuts: int
    weights: tuple[tuple[str, int], ...]
    drop: float
    repeat: float


def draw(rng: random.Random) -> Profile:
    """A profile from a seed."""
    group_commit = rng.random() < 0.25
    weights = dict(WEIGHTS)
    brokers = 3
    power_cuts = 1
    if rng.random() < 0.15:
        brokers = 4
        weights |= MOVES
        power_cuts = 0  # A move turned round may leave one copy of what is committed.
    if rng.random() < 0.2:
        weights |= DELETES
    if rng.random() < 0.15:
        weights |= MINIMUMS
        power_cuts = 0
    if rng.random() < 0.15:
        weights |= BLACKOUTS
        power_cuts = 0
    if group_commit:
        power_cuts = 1000
        weights["sync"] = 120
    for name in sorted(weights):
        if name in REPAIRS:
            weights[name] = int(weights[name] * rng.choice((0.3, 1, 1, 2)))
        elif name not in ("deliver", "fetch", "produce"):
            weights[name] *= rng.choice((0, 1, 1, 1, 2))
    replicas = rng.sample(range(1, brokers + 1), 3)
    drop = rng.choice((0.0, 0.04, 0.04, 0.1))
    repeat = rng.choice((0.0, 0.05, 0.05, 0.15))
    named = tuple(sorted(weights.items()))
    return Profile(group_commit, brokers, tuple(replicas), power_cuts, named, drop, repeat)
