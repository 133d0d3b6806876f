"""The profile of a seed: swarm testing draws how often each event happens."""

import random
from collections.abc import Collection
from dataclasses import dataclass, replace

from verify.walk.messages import FollowerFetch, Parting, WriteIsr, WriteOutcome

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
# Of idle worlds: times in which nothing is written, and brokers that stand still.
QUIET = {"idle": 3, "stall": 6, "tick": 60}


@dataclass(frozen=True, slots=True)
class Theme:
    """What some seeds are mostly about, so that what needs many things at once is not rare."""

    # Weights in place of the usual ones.
    weights: tuple[tuple[str, int], ...] = ()
    # Kinds of messages of which some come very late, and how many of them.
    late: tuple[type, ...] = ()
    delay: float = 0.0
    # How often what has arrived arrives again.
    repeat: float | None = None
    # How many brokers there are at least.
    brokers: int = 3
    # Whether what happens to brokers happens to one of them, mostly: the others go on meanwhile.
    one_victim: bool = False


PLAIN = Theme()
THEMES = (
    # Writes and answers of the store come late and twice, while the brokers in them restart.
    Theme(
        (("doubt", 80), ("register", 140), ("power", 60), ("tick", 80), ("prefer", 0), ("late", 6)),
        (WriteIsr, WriteOutcome),
        0.5,
        0.4,
    ),
    # Fetches and answers of old leader epochs, while leadership goes back and forth.
    Theme(
        (
            ("prefer", 40),
            ("move", 16),
            ("doubt", 8),
            ("kill", 0),
            ("plan", 120),
            ("late", 12),
        ),
        (FollowerFetch, Parting),
        0.06,
    ),
    # Logs that begin late, and replicas that come back with less than that.
    Theme((("delete", 50), ("power", 40), ("tick", 60), ("doubt", 60), ("register", 120))),
    # All lose power again and again; the store notices sooner or later.
    Theme((("blackout", 24), ("doubt", 30), ("kill", 0), ("power", 0), ("restart", 80))),
)
# Of a later time, and drawn apart, so that the runs of older seeds stay what they were.
MORE_THEMES = (
    # One broker dies, loses what it had and comes back, while its joining is on the way.
    Theme(
        (
            ("doubt", 60),
            ("register", 140),
            ("power", 40),
            ("restart", 140),
            ("tick", 60),
            ("plan", 160),
            ("prefer", 0),
            ("kill", 0),
            ("late", 20),
        ),
        (WriteIsr,),
        0.6,
        one_victim=True,
    ),
    # The same where the leader has deleted what it would have to fetch next.
    Theme(
        (
            ("delete", 50),
            ("doubt", 60),
            ("register", 140),
            ("power", 40),
            ("restart", 140),
            ("tell", 80),
            ("plan", 120),
            ("produce", 40),
            ("tick", 160),
            ("prefer", 0),
            ("kill", 0),
        ),
        one_victim=True,
    ),
    # Replicas are moved away and back before all brokers know it.
    Theme(
        (("move", 8), ("plan", 120), ("tell", 20), ("doubt", 4), ("kill", 0), ("power", 0)),
        brokers=4,
    ),
    # Followers fall behind and catch up: the ISR changes all the time.
    Theme((("tick", 140), ("produce", 90), ("fetch", 180), ("doubt", 10), ("prefer", 6))),
)


@dataclass(frozen=True, slots=True)
class WalkProfile:
    """What may happen in one run."""

    group_commit: bool
    brokers: int
    replicas: tuple[int, ...]
    # How many power cuts may take unsynced records: one less than copies of what is committed.
    power_cuts: int
    weights: tuple[tuple[str, int], ...]
    drop: float
    repeat: float
    late: tuple[type, ...]
    delay: float
    # The broker that most events happen to; 0 for all alike.
    victim: int
    # Whether leaders look at their followers by the true time, and are judged by it.
    is_punctual: bool = False
    min_isr: int = 2
    silence_ms: int | None = None


def draw(rng: random.Random, seed: int) -> WalkProfile:
    """A profile from a seed; `rng` is the seed's own."""
    theme = rng.choice(THEMES) if rng.random() < 0.4 else PLAIN
    apart = random.Random(f"{seed}/more")
    if apart.random() < 0.25:
        theme = apart.choice(MORE_THEMES)
    group_commit = rng.random() < 0.25
    weights = dict(WEIGHTS)
    brokers = 3
    power_cuts = 1
    if rng.random() < 0.15:
        brokers = 4
        weights |= MOVES
    brokers = max(brokers, theme.brokers)
    if rng.random() < 0.2:
        weights |= DELETES
    if rng.random() < 0.15:
        weights |= MINIMUMS
        power_cuts = 0
    if rng.random() < 0.15:
        weights |= BLACKOUTS
    weights |= dict(theme.weights)
    if "blackout" in weights:
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
    return WalkProfile(
        group_commit,
        brokers,
        tuple(replicas),
        power_cuts,
        tuple(sorted(weights.items())),
        drop,
        repeat if theme.repeat is None else theme.repeat,
        theme.late,
        theme.delay,
        apart.randint(1, brokers) if theme.one_victim else 0,
    )


def draw_idle(rng: random.Random, seed: int) -> WalkProfile:
    """The same, with times in which nothing is written for longer than a follower may lag.

    Leaders are punctual there, so that the laws of who leaves an ISR can be judged.
    """
    drawn = draw(rng, seed)
    apart = random.Random(f"{seed}/idle")
    min_isr = apart.choice((1, 2))
    weights = dict(drawn.weights) | QUIET
    # A calm world, in which most followers are in sync: half of them lose nothing on the way.
    calm = apart.random() < 0.5
    if calm:
        weights |= {"doubt": 4, "kill": 1, "power": 1, "fail_over": 1, "prefer": 4}
    if min_isr == 1:
        weights.pop("blackout", None)
    return replace(
        drawn,
        weights=tuple(sorted(weights.items())),
        drop=0.0 if calm else drawn.drop,
        # What is acknowledged may be on the leader alone, if it is alone in sync.
        power_cuts=drawn.power_cuts if drawn.group_commit or min_isr == 2 else 0,
        victim=drawn.victim if min_isr == 2 else 0,
        is_punctual=True,
        min_isr=min_isr,
        silence_ms=apart.choice((None, 25)),
    )


def within(
    drawn: WalkProfile, brokers: int, replicas: Collection[int], group_commit: bool
) -> WalkProfile:
    """What of `drawn` may happen in a world that was moved before.

    What it may still lose is not known: with group commit any power cut is allowed, else none.
    """
    barred = {"blackout"} if group_commit else {"blackout", "power"}
    if brokers < len(replicas) + 1:
        barred.add("move")
    return replace(
        drawn,
        group_commit=group_commit,
        brokers=brokers,
        replicas=tuple(replicas),
        power_cuts=1000 if group_commit else 0,
        weights=tuple((name, weight) for name, weight in drawn.weights if name not in barred),
        victim=drawn.victim if drawn.victim <= brokers and group_commit else 0,
    )
