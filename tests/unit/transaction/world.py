"""Producers, a coordinator that dies, and partitions, with a network that delays and repeats.

All that decides is what the broker runs: the coordinator's core and the partitions' producer
states. A run is judged by what a reader of committed records sees in the end.
"""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.record.builder import BatchBuilder
from ottla.record.control import ControlType, EndTransactionMarker, build_marker
from ottla.record.header import read_header
from ottla.storage.producers.state import Guard, ProducerStates
from ottla.transaction.transaction import EPOCH_PER_TRANSACTION, Answered, Markers, ProducerIdentity
from tests.unit.transaction.driver import NEW, TIMEOUT_MS, Driver

T = TypeVar("T")
PARTITIONS = tuple(TopicPartition("t", index) for index in range(3))
NONE = ErrorCode.NONE


class BrokenLawError(Exception):
    """Something that no run may show."""


@dataclass(slots=True)
class Entry:
    """What stands at an offset: a value of a producer, or the end of its transaction."""

    producer_id: int
    value: tuple[str, int] | None = None
    is_commit: bool = False


class Log:
    """One partition: its records, and what it knows of producers."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.producers = ProducerStates()

    def append(
        self, who: ProducerIdentity, sequence: int, value: tuple[str, int], guard: Guard | None
    ) -> None:
        """Append one record. Raises OttlaError."""
        builder = BatchBuilder(
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        builder.append(0, None, b"")
        header = read_header(builder.build())
        self.producers.check_open(header, guard)
        if self.producers.check(header) is None:
            self.producers.update(header, len(self.entries))
            self.entries.append(Entry(who.producer_id, value))

    def end(self, markers: Markers, coordinator_epoch: int) -> None:
        """Write a marker. Raises OttlaError."""
        kind = ControlType.COMMIT if markers.is_commit else ControlType.ABORT
        header = read_header(
            build_marker(
                EndTransactionMarker(kind, coordinator_epoch),
                producer_id=markers.identity.producer_id,
                producer_epoch=markers.identity.producer_epoch,
                timestamp=0,
            )
        )
        raises = markers.client_version >= EPOCH_PER_TRANSACTION
        if self.producers.check_marker(header, coordinator_epoch, raises_epoch=raises):
            offset = len(self.entries)
            self.producers.end_transaction(header, offset, coordinator_epoch, not markers.is_commit)
            self.entries.append(Entry(header.producer_id, is_commit=markers.is_commit))

    def committed(self) -> list[tuple[str, int]]:
        """What a reader of committed records sees, up to the first open transaction."""
        found: list[tuple[str, int]] = []
        for offset, entry in enumerate(self.entries):
            if entry.value is None:
                continue
            end = next(
                (
                    later
                    for later in self.entries[offset:]
                    if later.value is None and later.producer_id == entry.producer_id
                ),
                None,
            )
            if end is None:
                return found
            if end.is_commit:
                found.append(entry.value)
        return found


@dataclass(slots=True)
class Sent:
    """What a client has put into one of its transactions, and what it knows of the end."""

    values: list[tuple[TopicPartition, tuple[str, int]]] = field(default_factory=list)
    # None while it does not know.
    outcome: bool | None = None
    asked: bool | None = None


class Client:
    """A producer of a transactional id; retries what it got no answer to, then gives up."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        # Whether another has come in its place.
        self.is_zombie = False
        self.identity: ProducerIdentity | None = None
        self.sequences: dict[TopicPartition, int] = {}
        self.transaction: Sent | None = None

    def step(self) -> None:
        """Do the next thing."""
        world = self.world
        if self.identity is None:
            self._begin()
        elif self.transaction is None:
            self.transaction = Sent()
            world.transactions.append(self.transaction)
        elif self.transaction.asked is not None:
            self._end(commit=self.transaction.asked)
        elif len(self.transaction.values) < 4 and world.rng.random() < 0.7:
            self._produce()
        else:
            # Nothing cannot be committed.
            self._end(commit=bool(self.transaction.values) and world.rng.random() < 0.7)

    def restart(self) -> None:
        """Die, and come back knowing nothing; what was open is never known to have ended."""
        self.identity = None
        self.transaction = None
        if self.is_zombie and self in self.world.clients:
            self.world.clients.remove(self)

    def _begin(self) -> None:
        answered = self.world.call(lambda: self.world.driver.init(self.name))
        if answered is not None and answered.code is NONE:
            self.identity = answered.identity
            self.sequences.clear()

    def _produce(self) -> None:
        assert self.identity is not None
        assert self.transaction is not None
        partition = self.world.rng.choice(PARTITIONS)
        value = (self.name, next(self.world.numbers))
        self.transaction.values.append((partition, value))
        identity, sequence = self.identity, self.sequences.get(partition, 0)
        self.sequences[partition] = sequence + 1
        code: ErrorCode | None = None
        for _ in range(20):
            code = self.world.call(
                lambda: self.world.produce(self.name, identity, partition, sequence, value)
            )
            if code not in (None, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE):
                break
            self.world.calm()
        if code is not NONE:
            self.restart()

    def _end(self, *, commit: bool) -> None:
        assert self.identity is not None
        assert self.transaction is not None
        identity = self.identity
        self.transaction.asked = commit
        answered = self.world.call(
            lambda: self.world.driver.end(identity, commit=commit, name=self.name)
        )
        if answered is None or answered.code is ErrorCode.CONCURRENT_TRANSACTIONS:
            return
        if answered.code is NONE:
            self.transaction.outcome = commit
            self.transaction = None
            self.identity = answered.identity
            self.sequences.clear()
        else:
            self.restart()


class World:
    """All of one run. `version` as in Transaction.client_version: what the clients can."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.driver = Driver()
        self.logs = {partition: Log() for partition in PARTITIONS}
        self.clients = [Client(self, name) for name in ("x", "y")]
        self.transactions: list[Sent] = []
        self.coordinator_epoch = 0
        self.numbers = itertools.count()
        # Requests that come once more, or late.
        self._late: list[Callable[[], object]] = []
        # Markers and the partitions that do not know yet; they may come twice, too.
        self._marking: list[tuple[Markers, set[TopicPartition]]] = []

    def run(self, steps: int) -> None:
        """Let things happen, then heal, and judge."""
        for _ in range(steps):
            self._step()
        self.heal()
        self.judge()

    def call(self, request: Callable[[], T]) -> T | None:
        """Send a request; the answer, or None where one of them was lost."""
        chance = self.rng.random()
        if chance < 0.1:
            self._late.append(request)
            return None
        answer = request()
        if chance < 0.2:
            self._late.append(request)
        if chance > 0.9:
            return None
        return answer

    def produce(
        self,
        name: str,
        who: ProducerIdentity,
        partition: TopicPartition,
        sequence: int,
        value: tuple[str, int],
    ) -> ErrorCode:
        """Produce, version 12: the partition's leader adds it to the transaction."""
        log = self.logs[partition]
        guard = log.producers.guard(who.producer_id)
        if not log.producers.is_open(*who):
            code = self.driver.add(who, partition, name=name, version=NEW)
            if code is not NONE:
                return code
            if self.rng.random() < 0.2:
                # Anything may happen between the coordinator's answer and the append.
                self.calm()
        try:
            log.append(who, sequence, value, guard)
        except OttlaError as error:
            return error.code
        return NONE

    def calm(self) -> None:
        """Let some of what is on its way arrive."""
        for _ in range(3):
            self._mark()

    def heal(self) -> None:
        """Everything arrives, what is open times out, all markers are written."""
        for _ in range(2):
            for request in self._late:
                request()
            self.driver.now_ms += TIMEOUT_MS + 1
            self.driver.carry_out(self.driver.coordinator.abort_overdue(self.driver.now_ms))
            while self.driver.markers or self._marking:
                self._mark()

    def judge(self) -> None:
        """All or nothing, and as the producer was told."""
        seen = {partition: log.committed() for partition, log in self.logs.items()}
        for partition, log in self.logs.items():
            if log.producers.open_transactions:
                raise BrokenLawError(f"{partition} has a transaction that never ends")
            if len(set(seen[partition])) != len(seen[partition]):
                raise BrokenLawError(f"a record stands twice in {partition}")
        for sent in self.transactions:
            there = [value in seen[partition] for partition, value in sent.values]
            if sent.outcome is True and not all(there):
                raise BrokenLawError(f"committed, and not all is there: {sent}")
            if sent.outcome is False and any(there):
                raise BrokenLawError(f"aborted, and something is there: {sent}")
            if sent.asked is not True and any(there):
                raise BrokenLawError(f"nobody asked for a commit, and it is there: {sent}")
            if len(set(there)) > 1:
                raise BrokenLawError(f"torn: {sent}")

    def _step(self) -> None:
        chance = self.rng.random()
        client = self.rng.choice(self.clients)
        if chance < 0.6:
            client.step()
        elif chance < 0.8:
            self._mark()
        elif chance < 0.9:
            if self._late:
                self._late.pop(self.rng.randrange(len(self._late)))()
        elif chance < 0.92:
            client.restart()
        elif chance < 0.94:
            # Another comes in its place, and the first does not know.
            client.is_zombie = True
            self.clients.append(Client(self, client.name))
        elif chance < 0.97:
            self.driver.restart()
            self.coordinator_epoch += 1
            # Those of the coordinator before may still be on their way.
        else:
            self.driver.now_ms += TIMEOUT_MS // 2
            self.driver.carry_out(self.driver.coordinator.abort_overdue(self.driver.now_ms))

    def _mark(self) -> None:
        """One partition is told an outcome."""
        self._marking += [(each, set(each.partitions)) for each in self.driver.markers]
        self.driver.markers.clear()
        if not self._marking:
            return
        place = self.rng.randrange(len(self._marking))
        markers, missing = self._marking[place]
        partition = self.rng.choice(sorted(missing))
        try:
            self.logs[partition].end(markers, self.coordinator_epoch)
        except OttlaError as error:
            # It has been overtaken by the same outcome, told by another coordinator.
            if error.code is not ErrorCode.INVALID_PRODUCER_EPOCH:
                raise
        if self.rng.random() < 0.1:
            again = self.logs[partition]
            epoch = self.coordinator_epoch
            self._late.append(lambda: _again(again, markers, epoch))
        missing.discard(partition)
        if not missing:
            del self._marking[place]
            self.driver.carry_out(self.driver.coordinator.complete(markers, self.driver.now_ms))


def _again(log: Log, markers: Markers, coordinator_epoch: int) -> None:
    """The same marker comes once more, late."""
    try:
        log.end(markers, coordinator_epoch)
    except OttlaError:
        return


__all__ = ["Answered", "BrokenLawError", "World"]
