"""The world a seed draws: how large, how busy, and what may go wrong in it.

Each seed has some kinds of trouble and not others (swarm testing): what never happens together
under all troubles at once happens under a few.
"""

from dataclasses import dataclass, field
from random import Random

# How often each kind of trouble comes, where a seed has it. See `faults.py` for what they do.
KINDS = {
    "kill": 6,
    "kill_leader": 6,
    "kill_controller": 3,
    "power": 5,
    "blackout": 1,
    "restart": 4,
    "pause": 4,
    "hiccup": 4,
    "isolate": 4,
    "one_way": 4,
    "split": 4,
    "client_cut": 3,
    "swizzle": 3,
    "stall": 6,
    "drop": 6,
    "half_drop": 3,
    "slow_link": 3,
    "store_outage": 2,
    "store_cut": 3,
    "store_answer": 4,
    "slow_disk": 3,
    "full_disk": 2,
    "fsync_error": 2,
    "clock_jump": 2,
    "read_error": 2,
    "bit_flip": 3,
}
# Drawn only where there are copiers.
COPIER_KINDS = {"kill_copier": 8, "pause_copier": 4, "twin_copier": 4, "kill_coordinator": 6}
# Drawn only where they are aimed: they wait for their instant.
AIMED_KINDS = {"kill_decided": 6, "pause_decided": 3, "late_marker": 9, "twin_open": 4}
# Drawn only where partitions idle.
IDLE_KINDS = {"pause_followers": 10}
# What needs closed segments to be done to.
_FOR_SEGMENTS = frozenset({"read_error", "bit_flip"})
# What needs more than one broker.
_FOR_MANY = frozenset({"kill_leader", "kill_controller", "isolate", "one_way", "split", "swizzle"})


# Short enough that a run closes many.
_SHORT_SEGMENT_MS = 1_000


@dataclass(frozen=True, slots=True)
class Profile:
    """Times in milliseconds."""

    brokers: int
    partitions: int
    min_in_sync: int
    producers: int
    readers: int
    members: int
    # The mean time between a producer's sends.
    send_every_ms: int
    record_bytes_max: int
    flush_policy: str
    sees_death: bool
    fragmentation: float
    session_ms: int
    fault_every_ms: int
    segment_ms: int
    # Producers that wait for the leader only, beside the others.
    hasty_producers: int
    weights: dict[str, int] = field(default_factory=dict)
    # How long a broker keeps a consumer's fetch, and a consumer a program's poll.
    fetch_wait_ms: int = 200
    poll_ms: int = 500
    # What readers do between two polls takes so long at most (members: twice as long).
    idle_ms: int = 100
    # The mean time between two questions for the ends.
    ends_every_ms: int = 500
    # Programs that copy in transactions, which may take so long, of clients of this version.
    copiers: int = 0
    transaction_ms: int = 10_000
    transaction_version: int = 2
    # How often they give one up of their own.
    gives_up: float = 0.1
    # Whether what was sent before its sender closed the connection is read and obeyed.
    late_requests: bool = False
    # Topics that are made while the trouble lasts.
    late_topics: int = 0
    # How many of the records go to the first partition, beside its share; the others idle.
    busy_share: float = 0.0
    # Whether ACLs and users change, and brokers go by them.
    guarded: bool = False
    # From how many logs on a flush goes to the journal; 0 for never.
    journal_min_logs: int = 0

    @property
    def replication(self) -> int:
        return min(self.brokers, 3)


def draw(seed: int | str, brokers: int | None = None) -> Profile:
    """The profile of a seed; with `brokers` given, of so many brokers."""
    chance = Random(f"{seed}/profile")
    count = chance.choice([1, 3, 3, 3]) if brokers is None else brokers
    policy = "group" if count == 1 or chance.random() < 0.75 else "os"
    weights = {
        kind: weight * chance.randrange(1, 5) if chance.random() < 0.5 else 0
        for kind, weight in KINDS.items()
        if kind not in _FOR_SEGMENTS
    }
    # Drawn apart, so that the worlds of older seeds stay much as they were.
    more = Random(f"{seed}/profile/more")
    has_segments = more.random() < 0.4
    for kind in sorted(_FOR_SEGMENTS):
        weights[kind] = KINDS[kind] * more.randrange(1, 5) if has_segments else 0
    for kind in KINDS:
        if count == 1 and kind in _FOR_MANY:
            weights[kind] = 0
        if policy == "os" and kind in ("blackout", "fsync_error"):
            weights[kind] = 0
    if not any(weights.values()):
        weights["kill"] = 1
    return Profile(
        brokers=count,
        partitions=chance.choice([1, 2, 2, 4]),
        min_in_sync=min(2, count),
        producers=chance.choice([1, 2, 3]),
        readers=chance.choice([1, 1, 2]),
        members=chance.choice([0, 1, 2]),
        # Three brokers are three times the work.
        send_every_ms=chance.choice([50, 100, 200]) * (1 if count == 1 else 3),
        record_bytes_max=chance.choice([30, 300, 3_000]),
        flush_policy=policy,
        sees_death=chance.random() < 0.7,
        fragmentation=chance.choice([0.0, 0.0, 0.02, 0.2]),
        session_ms=chance.choice([1_500, 3_000, 6_000]),
        fault_every_ms=chance.choice([500, 1_000, 2_000, 4_000]),
        segment_ms=_SHORT_SEGMENT_MS if has_segments else 7 * 86_400_000,
        hasty_producers=1 if more.random() < 0.3 else 0,
        weights=weights,
        late_topics=Random(f"{seed}/profile/topics").choice([0, 0, 3]) if count > 1 else 0,
        journal_min_logs=Random(f"{seed}/profile/journal").choice([0, 1, 1, 2, 3]),
    )
