"""Writes leaders' ISR changes to the store, many partitions in one conditional `multi`.

`replica.isr.IsrChange` defines the state of the store that a change requires. If the outcome of a
write is unknown, the partition state is read back (S15). The changes of one batch are announced in
one node under `/isr_change_notification`; the controller then sends them to all brokers (P17).
"""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.broker.cluster.registration import check_controller, check_registration
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.roles import Roles
from ottla.coordination.interface.store import (
    BadVersion,
    Check,
    Create,
    NoNode,
    Operation,
    Set,
    Store,
    StoreError,
    StoreUnavailable,
)
from ottla.metadata import paths
from ottla.metadata.image import PartitionImage
from ottla.metadata.nodes import decode_partition, decode_topic, encode_partition
from ottla.replica.isr import IsrChange, Rejection
from ottla.replica.leader import Leader

_log = logging.getLogger(__name__)

_PREFIX = f"{paths.ISR_CHANGES}/isr_change_"
# Changes in one `multi`, at most.
_BATCH_MAX = 64
_RETRY_S = 0.1

Spawn = Callable[[Coroutine[Any, Any, None]], object]


@dataclass(frozen=True, slots=True)
class _PendingChange:
    """An ISR change proposed by a leader, or with `change` None a request to read the state."""

    leading: Roles
    partition: Partition
    leader: Leader
    change: IsrChange | None


class IsrWriter:
    """The queue of ISR changes between the leaders and the store."""

    def __init__(self, store: Store, clock: Clock, spawn: Spawn) -> None:
        self._store = store
        self._clock = clock
        self._spawn = spawn
        self._wishes: list[_PendingChange] = []
        self._working = False
        # The controller epoch that writes are conditional on; None until it is read.
        self._controller_epoch: int | None = None

    def propose(self, leading: Roles, partition: Partition, change: IsrChange) -> None:
        """Queue a change, and report its outcome to `leading`."""
        self._add(leading, partition, change)

    def read(self, leading: Roles, partition: Partition) -> None:
        """Queue a read of the partition state, retried until it succeeds, for `leading`."""
        self._add(leading, partition, None)

    def _add(self, leading: Roles, partition: Partition, change: IsrChange | None) -> None:
        assert partition.leader is not None
        self._wishes.append(_PendingChange(leading, partition, partition.leader, change))
        if not self._working:
            self._working = True
            self._spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._wishes:
                wishes, self._wishes = self._wishes[:_BATCH_MAX], self._wishes[_BATCH_MAX:]
                wishes = [wish for wish in wishes if wish.partition.leader is wish.leader]
                for wish in wishes:
                    if wish.change is None:
                        await self._read(wish)
                changes = [wish for wish in wishes if wish.change is not None]
                if changes:
                    await self._write(changes)
        finally:
            self._working = False

    # -- writing

    async def _write(self, wishes: Sequence[_PendingChange]) -> None:
        made: list[_PendingChange] = []
        if len(wishes) > 1 and await self._write_together(wishes):
            made += wishes
        else:
            made += [wish for wish in wishes if await self._write_one(wish)]
        if made:
            await self._announce(made)

    async def _write_together(self, wishes: Sequence[_PendingChange]) -> bool:
        """Write all changes in one transaction; return False if their outcomes are unknown."""
        try:
            operations = [await self._operations(wish) for wish in wishes]
            results = await self._store.multi([one for each in operations for one in each])
        except StoreError:
            return False
        position = 0
        for wish, each in zip(wishes, operations, strict=True):
            position += len(each)
            self._on_made(wish, results[position - 1])
        return True

    async def _write_one(self, wish: _PendingChange) -> bool:
        """Write one change and report its outcome; return whether it was written."""
        change = wish.change
        assert change is not None
        state_path = paths.partition_state(wish.partition.topic, wish.partition.index)
        try:
            results = await self._store.multi(await self._operations(wish))
        except (BadVersion, NoNode) as error:
            if error.path == paths.CONTROLLER_EPOCH:
                self._controller_epoch = None
                self._on_rejected(wish, Rejection.CONTROLLER_MOVED)
            elif error.path in (state_path, paths.topic_mark(wish.partition.topic_id)):
                self._on_rejected(wish, Rejection.OUTDATED)
            else:
                self._on_rejected(wish, Rejection.INELIGIBLE)
            return False
        except StoreError as error:
            if not isinstance(error, StoreUnavailable):
                _log.warning("the store refused an ISR change: %s", error.message)
            if wish.partition.leader is wish.leader:
                wish.leading.carry_out(wish.partition, wish.leader.on_isr_unknown(change.nonce))
            return False
        self._on_made(wish, results[-1])
        return True

    async def _operations(self, wish: _PendingChange) -> list[Operation]:
        """Return the store operations of a change: the checks, and then the write."""
        change, partition = wish.change, wish.partition
        assert change is not None
        epoch = self._controller_epoch
        if epoch is None:
            node = await self._store.get(paths.CONTROLLER_EPOCH)
            epoch = self._controller_epoch = 0 if node is None else node.version
        operations: list[Operation] = [
            check_controller(epoch),
            Check(paths.topic_mark(partition.topic_id)),
        ]
        for broker_id, broker_epoch in change.joining:
            operations.append(Check(paths.broker(broker_id)))
            operations.append(check_registration(broker_id, broker_epoch))
        path = paths.partition_state(partition.topic, partition.index)
        operations.append(Set(path, encode_partition(change.after, epoch), change.after.version))
        return operations

    def _on_made(self, wish: _PendingChange, version: object) -> None:
        assert isinstance(version, int)
        assert wish.change is not None
        if wish.partition.leader is wish.leader:
            wish.leading.become(wish.partition, wish.change.committed(version))

    def _on_rejected(self, wish: _PendingChange, rejection: Rejection) -> None:
        assert wish.change is not None
        if wish.partition.leader is wish.leader:
            wish.leading.on_isr_rejected(wish.partition, wish.change.nonce, rejection)

    async def _announce(self, made: Sequence[_PendingChange]) -> None:
        """Announce the written changes to the controller.

        If that fails, the controller sees them when it next reads the partition states.
        """
        changed = [
            {"topic": wish.partition.topic, "partition": wish.partition.index} for wish in made
        ]
        data = json.dumps({"version": 1, "partitions": changed}, separators=(",", ":")).encode()
        try:
            await self._store.multi([Create(_PREFIX, data, sequential=True)])
        except StoreError as error:
            _log.warning("could not announce a change of the ISR: %s", error.message)

    # -- reading

    async def _read(self, wish: _PendingChange) -> None:
        partition = wish.partition
        while partition.leader is wish.leader:
            try:
                image = await self._state(partition)
            except OttlaError as error:
                _log.warning("cannot read the state of %s: %s", partition.topic_partition, error)
                await asyncio.sleep(_RETRY_S)
                continue
            if partition.leader is not wish.leader:
                return
            known = wish.leader.term.negotiation.committed
            if image is not None and (image.leader_epoch, image.version) > (
                known.leader_epoch,
                known.version,
            ):
                wish.leading.become(partition, image)
            else:
                effects = wish.leader.on_state_read(image, now_ms=self._clock.monotonic_ms())
                wish.leading.carry_out(partition, effects)
            return

    async def _state(self, partition: Partition) -> PartitionImage | None:
        """Read a partition's state from the store; None if its topic was deleted."""
        topic_path = paths.topic(partition.topic)
        topic_node = await self._store.get(topic_path)
        if topic_node is None:
            return None
        topic = decode_topic(topic_path, topic_node.data)
        if topic.id != partition.topic_id or partition.index >= len(topic.replicas):
            return None
        path = paths.partition_state(partition.topic, partition.index)
        node = await self._store.get(path)
        if node is None:
            return None
        return decode_partition(path, node.data, topic.replicas[partition.index], node.version)
