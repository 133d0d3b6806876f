"""A coordinator with a log in a list: decides, appends, applies, keeps answers and markers."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.transaction.coordinator import TransactionCoordinator, TransactionSettings
from ottla.transaction.end_txn import End
from ottla.transaction.init_producer_id import ProducerIdWish
from ottla.transaction.records import decode, encode
from ottla.transaction.transaction import (
    NO_IDENTITY,
    Answered,
    Markers,
    ProducerIdentity,
    Transaction,
    TransactionDecision,
    TransactionState,
)

TIMESTAMP = 1_700_000_000_000
TIMEOUT_MS = 60_000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
# Clients of old give no new epoch to a transaction; those of KIP-890 do.
OLD, NEW = 1, 2


class Driver:
    """One coordinator. `markers` are those that are on their way."""

    def __init__(self, settings: TransactionSettings | None = None) -> None:
        self.settings = settings or TransactionSettings()
        self.coordinator = TransactionCoordinator(self.settings)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.markers: list[Markers] = []
        self.now_ms = TIMESTAMP
        self.next_producer_id = 1000
        self.waits = False

    def carry_out(self, decision: TransactionDecision) -> object:
        """Append, apply, and return the one answer there is; None where there is none."""
        for record in decision.records:
            self.log.append(encode(record))
            self.coordinator.apply(record)
        self.markers += decision.markers
        self.waits = decision.waits
        return decision.replies[0].message if decision.replies else None

    def restart(self) -> None:
        """Replay the log into a new coordinator; what was on its way is sent again."""
        self.coordinator = TransactionCoordinator(self.settings)
        self.markers.clear()
        for key, value in self.log:
            record = decode(key, value)
            assert record is not None
            self.coordinator.apply(record)
        self.carry_out(self.coordinator.start())

    def init(
        self, name: str = "x", had: ProducerIdentity = NO_IDENTITY, timeout_ms: int = TIMEOUT_MS
    ) -> Answered:
        """InitProducerId."""
        fresh = self._fresh(name)
        wish = ProducerIdWish(timeout_ms, had)
        return self._answered(self.coordinator.initialize("", name, wish, fresh, self.now_ms))

    def begin(self, name: str = "x") -> ProducerIdentity:
        """InitProducerId that must succeed."""
        answered = self.init(name)
        assert answered.code is ErrorCode.NONE
        return answered.identity

    def add(
        self,
        who: ProducerIdentity,
        *partitions: TopicPartition,
        name: str = "x",
        version: int = NEW,
    ) -> ErrorCode:
        """AddPartitionsToTxn."""
        wanted = frozenset(partitions or (T0,))
        decision = self.coordinator.add("", name, who, wanted, version, self.now_ms)
        return self._answered(decision).code

    def verify(
        self, who: ProducerIdentity, *partitions: TopicPartition, name: str = "x"
    ) -> list[int]:
        """What is said of each partition."""
        decision = self.coordinator.verify("", name, who, frozenset(partitions))
        codes = self.carry_out(decision)
        assert isinstance(codes, dict)
        return [codes[partition] for partition in partitions]

    def end(
        self, who: ProducerIdentity, *, commit: bool = True, name: str = "x", version: int = NEW
    ) -> Answered:
        """EndTxn."""
        wish = End(who, commit, version)
        fresh = self._fresh(name)
        return self._answered(self.coordinator.end("", name, wish, fresh, self.now_ms))

    def deliver(self) -> None:
        """Every marker on its way is written."""
        markers, self.markers = self.markers, []
        for each in markers:
            self.carry_out(self.coordinator.complete(each, self.now_ms))

    def transaction(self, name: str = "x") -> Transaction:
        return self.coordinator.transactions[name]

    def state(self, name: str = "x") -> TransactionState:
        return self.transaction(name).state

    def _fresh(self, name: str) -> int | None:
        if not self.coordinator.needs_producer_id(name):
            return None
        self.next_producer_id += 1
        return self.next_producer_id

    def _answered(self, decision: TransactionDecision) -> Answered:
        answered = self.carry_out(decision)
        assert isinstance(answered, Answered)
        return answered
