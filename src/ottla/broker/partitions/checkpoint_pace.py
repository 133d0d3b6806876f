"""Decides when a checkpoint should move a log's recovery forward, so that it reads less."""

from ottla.storage.log.log import Log

# After this many bytes or this long a partition is flushed with a checkpoint.
_BYTES = 16 << 20
_MS = 60_000


class CheckpointPace:
    """The position, size and time of a log's last checkpoint."""

    __slots__ = ("_end", "_size_bytes", "_when_ms")

    def __init__(self, log: Log, now_ms: int) -> None:
        self.note(log, now_ms)

    def note(self, log: Log, now_ms: int) -> None:
        """Note that the log has just been checkpointed."""
        self._end = log.log_end_offset
        self._size_bytes = log.size_bytes
        self._when_ms = now_ms

    def is_due(self, log: Log, now_ms: int) -> bool:
        """Whether the log has grown much since its checkpoint, or at all since a long time."""
        if log.log_end_offset == self._end:
            return False
        grown_bytes = log.size_bytes - self._size_bytes
        return grown_bytes >= _BYTES or now_ms - self._when_ms >= _MS

    def on_copied(self, log: Log) -> None:
        """Note that the same records are now in `log`, in other files."""
        self._size_bytes = log.size_bytes
