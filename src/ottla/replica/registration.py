"""A broker's registration and the live brokers, shared by the cores of all its partitions."""

from ottla.base.ids import BrokerId

# A nonce is unique in the cluster: the broker epoch in its upper bits, a counter below.
_COUNTER_BITS = 32
FOR_EVER = 1 << 62
NEVER = -FOR_EVER


class Registration:
    """One registration of a broker; the shell keeps it up to date and the cores read it.

    When its session has expired, the broker registers again with a higher broker epoch and gets a
    new Registration. It gives up the leader and follower roles of the old one.
    """

    __slots__ = (
        "_counter",
        "broker_epoch",
        "broker_id",
        "confirmed_until_ms",
        "live",
        "session_ms",
    )

    def __init__(self, broker_id: BrokerId, broker_epoch: int, session_ms: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.session_ms = session_ms
        # Until this time no other broker can be elected in place of this one. It is most of a
        # session timeout after the store renewed the session. A flag would be wrong after this
        # process was paused; a time is not.
        self.confirmed_until_ms = FOR_EVER
        # Live brokers and their epochs, as in the newest cluster image.
        self.live: dict[BrokerId, int] = {broker_id: broker_epoch}
        self._counter = 0

    def next_nonce(self) -> int:
        """Return a number unique in the cluster, and greater than this broker's earlier ones."""
        self._counter += 1
        return self.broker_epoch << _COUNTER_BITS | self._counter


class OwnRegistration:
    """Holds the broker's `Registration`; `current` is replaced with each registration."""

    __slots__ = ("current",)

    def __init__(self, current: Registration) -> None:
        self.current = current
