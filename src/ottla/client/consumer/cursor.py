"""Returns fetched records and advances the positions."""

from ottla.base.errors import OttlaError
from ottla.client.consumer.fetcher import Fetched, Fetcher
from ottla.client.consumer.partition_state import RawBatches
from ottla.record.codec import Record


class Cursor:
    """The reading end of a `Fetcher`. Belongs to one consumer."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    def take(self, limit: int) -> tuple[Fetched, list[Record]] | None:
        """Return up to `limit` (> 0) records of one batch, None if nothing is available.

        The partition's position is then the offset after the last of them. Raises CorruptBatch,
        again and again until the consumer seeks past the damage.
        """
        while True:
            fetched = self._fetcher.take()
            if fetched is None:
                return None
            state = fetched.state
            found: list[Record] | None = fetched.rest
            if not found:
                try:
                    found = fetched.chunk.take(state.position)
                except OttlaError:
                    state.seek(state.position)
                    raise
            if found is None:
                self._finish(fetched)
                continue
            self._fetcher.give_back(fetched)
            if not found:
                state.position = max(state.position, fetched.chunk.next_offset)
                continue
            if len(found) > limit:
                found, fetched.rest = found[:limit], found[limit:]
                state.position = found[-1].offset + 1
            else:
                fetched.rest = []
                state.position = fetched.chunk.next_offset
            return fetched, found

    def take_raw(self) -> RawBatches | None:
        """Return the next answer unchanged, None if nothing is available."""
        fetched = self._fetcher.take()
        if fetched is None:
            return None
        state = fetched.state
        state.position = fetched.next_offset
        self._finish(fetched)
        return RawBatches(
            state.topic,
            state.partition,
            fetched.chunk.buffer,
            state.high_watermark,
            state.log_start_offset,
        )

    def _finish(self, fetched: Fetched) -> None:
        self._fetcher.finish(fetched)
        self._fetcher.pump()
