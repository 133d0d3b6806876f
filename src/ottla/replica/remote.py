"""What a leader knows from the fetches of one follower in its own term."""

from ottla.base.ids import BrokerId
from ottla.replica.standing import NEVER

UNKNOWN_END = -1


class Remote:
    """One follower as its leader sees it. At first no end is known, and it is not late (P23)."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "counts",
        "end",
        "fetched_ms",
        "followed_ms",
        "leader_end",
        "nonce",
        "refused_epoch",
    )

    def __init__(self, broker_id: BrokerId, now_ms: int) -> None:
        self.broker_id = broker_id
        # Broker epoch and nonce of its last fetch; older fetches are ignored.
        self.broker_epoch = -1
        self.nonce = -1
        # It holds everything below this; UNKNOWN_END before a fetch that continues our log.
        self.end = UNKNOWN_END
        # Our log's end when it fetched last, and when that was.
        self.leader_end = 0
        self.fetched_ms = now_ms
        # When it certainly followed us: its previous fetch had arrived before it sent the last
        # one, which may have waited here while this process stood still.
        self.followed_ms = NEVER
        # When it last held the whole log. While it does, that is now, whatever this says:
        # `Leader.on_grown` notes the end of that time. Counted from the term's start.
        self.caught_up_ms = now_ms
        # Whether its end bounds the high watermark.
        self.counts = False
        # The epoch of its last refused fetch, to record a refusal once.
        self.refused_epoch = -1

    @property
    def heard_ms(self) -> int:
        """When it last fetched this partition, or the term began."""
        return max(self.fetched_ms, self.followed_ms)

    @property
    def silent_since_ms(self) -> int:
        """Since when it had something to fetch of this partition and did not fetch.

        A follower that holds the whole log does not fetch the partition.
        """
        return max(self.fetched_ms, self.followed_ms, self.caught_up_ms)

    # Hot: once per follower, partition and fetch.
    def note_fetch(self, offset: int, leader_end: int, now_ms: int) -> None:
        """It holds everything below `offset`; the leader's log ends at `leader_end`.

        A follower that has reached the present end is caught up now. One that has reached the end
        at its previous fetch was caught up then: a busy leader is always ahead.
        """
        if offset >= leader_end:
            self.caught_up_ms = now_ms
        elif (
            offset >= self.leader_end
            and self.fetched_ms > self.caught_up_ms
            and self.end != UNKNOWN_END
        ):
            self.caught_up_ms = self.fetched_ms
        if self.end != UNKNOWN_END:
            self.followed_ms = self.fetched_ms
        self.end = offset
        self.leader_end = leader_end
        self.fetched_ms = now_ms

    def forget_end(self) -> None:
        """Its end is not known any more: it restarted, was replaced, or its log diverges."""
        self.end = UNKNOWN_END
        self.leader_end = 0
