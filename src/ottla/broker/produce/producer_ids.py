"""Assigns producer ids, which are never used twice in the cluster."""

import asyncio
import json

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, ProducerId
from ottla.coordination.interface.store import BadVersion, Create, NodeExists, Set, Store
from ottla.metadata import paths

# Ids are reserved in the store in blocks of this size. After a crash the rest of a block is unused.
BLOCK_SIZE = 1000

_LONG_MAX = 2**63 - 1


class ProducerIdBlocks:
    """Assigns producer ids from a block that is reserved for this broker."""

    def __init__(self, store: Store, broker_id: BrokerId) -> None:
        self._store = store
        self._broker_id = broker_id
        # Invariant: ids from _next to _end - 1 are reserved for this broker and not yet assigned.
        self._next = self._end = 0
        self._reserving = asyncio.Lock()

    def take(self) -> ProducerId | None:
        """Return an id from the current block; None if it is used up, which requires `reserve`."""
        if self._next == self._end:
            return None
        self._next += 1
        return ProducerId(self._next - 1)

    async def reserve(self) -> ProducerId:
        """Return an id, after reserving a new block if necessary. Raises OttlaError."""
        async with self._reserving:
            taken = self.take()
            if taken is None:
                self._next = await self._next_block()
                self._end = self._next + BLOCK_SIZE
                taken = self.take()
            assert taken is not None
            return taken

    async def _next_block(self) -> int:
        path = paths.PRODUCER_IDS
        while True:
            node = await self._store.get(path)
            first = 0 if node is None else _block_end(path, node.data) + 1
            if first > _LONG_MAX - BLOCK_SIZE:
                raise OttlaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids of the cluster are used up"
                )
            data = _encode(self._broker_id, first, first + BLOCK_SIZE - 1)
            try:
                if node is None:
                    await self._store.multi([Create(path, data)])
                else:
                    await self._store.multi([Set(path, data, node.version)])
            except (BadVersion, NodeExists):
                # Another broker has reserved that block; try the next one.
                continue
            return first


def _encode(broker_id: BrokerId, first: int, last: int) -> bytes:
    block = {"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)}
    return json.dumps(block, separators=(",", ":")).encode()


def _block_end(path: str, data: bytes) -> int:
    try:
        return int(json.loads(data)["block_end"])
    except (ValueError, KeyError, TypeError) as error:
        raise OttlaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"the store's node {path} does not hold a block of producer ids ({error}); restore it "
            "from a copy: handing out ids again could take records for duplicates",
        ) from error
