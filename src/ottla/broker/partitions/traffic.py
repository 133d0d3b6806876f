"""Counts what clients write to and read from one partition, without work for each record.

Appended records and bytes are differences of the log's end and size, taken when this broker begins
and ends to lead; only requests are counted one by one.
"""

from ottla.storage.log.log import Log


class Traffic:
    """The requests, records and bytes of one partition since it was opened; none ever falls."""

    __slots__ = (
        "_appended",
        "_began",
        "fetch_failures",
        "fetched_bytes",
        "fetches",
        "produce_failures",
        "produces",
    )

    def __init__(self) -> None:
        # Batches appended, requests for this partition that were refused, answers to fetches.
        self.produces = self.produce_failures = 0
        self.fetches = self.fetch_failures = self.fetched_bytes = 0
        # Records and bytes of earlier leaderships, and the log's end and bytes when the present one
        # began; None while another broker leads.
        self._appended = (0, 0)
        self._began: tuple[int, int] | None = None

    def begin(self, log: Log) -> None:
        """Count appends from now on: this broker leads."""
        self._appended, self._began = self.appended(log, log.size_bytes), _position(log)

    def end(self, log: Log) -> None:
        """Stop counting appends: this broker leads no more, or the log is about to be replaced."""
        self._appended, self._began = self.appended(log, log.size_bytes), None

    def appended(self, log: Log, size_bytes: int) -> tuple[int, int]:
        """Return the records (offsets) and bytes appended while this broker led.

        `size_bytes` is that of the log, which callers have.
        """
        if self._began is None:
            return self._appended
        (records, total_bytes), (since, since_bytes) = self._appended, self._began
        size_bytes += log.segments.removed_bytes
        return (
            records + max(0, log.log_end_offset - since),
            total_bytes + max(0, size_bytes - since_bytes),
        )


def _position(log: Log) -> tuple[int, int]:
    return log.log_end_offset, log.size_bytes + log.segments.removed_bytes
