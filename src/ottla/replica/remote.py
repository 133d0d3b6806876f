"""The leader's knowledge of one follower, from its fetches in this leader epoch."""

from ottla.base.ids import BrokerId
from ottla.replica.registration import NEVER

UNKNOWN_END = -1


class Remote:
    """One follower as its leader sees it.

    At first its log end offset is unknown, and it is treated as caught up (P23).
    """

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
        # The broker epoch and nonce of its last fetch; older fetches are ignored.
        self.broker_epoch = -1
        self.nonce = -1
        # The follower holds everything below this offset; UNKNOWN_END until a fetch continues our
        # log.
        self.end = UNKNOWN_END
        # Our log's end at its last fetch, and the time of that fetch.
        self.leader_end = 0
        self.fetched_ms = now_ms
        # The latest time at which it certainly followed us, that of its fetch before the last one.
        # The last fetch may have waited here unread while this process was paused.
        self.followed_ms = NEVER
        # When it last held the whole log; initially when the leader was made. Not updated while it
        # holds the whole log: `Leader.on_grown` sets it at the next append.
        self.caught_up_ms = now_ms
        # Whether the follower's end bounds the high watermark.
        self.counts = False
        # The epoch of its last fenced fetch, to record a refusal once.
        self.refused_epoch = -1

    @property
    def contact_ms(self) -> int:
        """The time of the follower's last fetch of this partition, or when the leader was made."""
        return max(self.fetched_ms, self.followed_ms)

    @property
    def silent_since_ms(self) -> int:
        """The time since which the follower lacks records of this partition without fetching it.

        A follower that holds the whole log does not fetch the partition.
        """
        return max(self.fetched_ms, self.followed_ms, self.caught_up_ms)

    # Hot: once per follower, partition and fetch.
    def note_fetch(self, offset: int, leader_end: int, now_ms: int) -> None:
        """Note that the follower holds everything below `offset`.

        The leader's log ends at `leader_end`.

        A follower that has reached `leader_end` is caught up now. If it has only reached the log
        end of its previous fetch, it was caught up at that fetch: on a busy partition the leader is
        always ahead.
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
        """Forget the follower's end, because it restarted, was replaced, or its log diverges."""
        self.end = UNKNOWN_END
        self.leader_end = 0
