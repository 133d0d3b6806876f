"""What a broker knows of itself and of the others: shared by all its partitions' cores."""

from ottla.base.ids import BrokerId

# A nonce is unique in the cluster: the broker epoch in its upper bits, a counter below.
_COUNTER_BITS = 32
FOR_EVER = 1 << 62
NEVER = -FOR_EVER


class Standing:
    """One per registration of a broker; the shell keeps it up to date, the cores read it.

    After a session has ended there is a new registration with a higher broker epoch, and with it
    a new Standing: roles of the old one are given up.
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
        # Until when nobody else can be given what is ours: the store renewed our session less
        # than most of its time ago. A moment and not a flag, so that it holds after a pause.
        self.confirmed_until_ms = FOR_EVER
        # Live brokers and their epochs, as the cluster image told last.
        self.live: dict[BrokerId, int] = {broker_id: broker_epoch}
        self._counter = 0

    def next_nonce(self) -> int:
        """A number nobody else gives out, greater than all before it from this broker."""
        self._counter += 1
        return self.broker_epoch << _COUNTER_BITS | self._counter
