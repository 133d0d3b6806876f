"""`ottla-run`: a log directory's note of the present run of its broker, for the next start.

Kafka looks only at whether a broker was stopped in order. But a process that dies leaves its writes
in the page cache, and one that flushes before it acknowledges leaves nothing to lose: both may
stay eligible as leaders (R-11). Only a power cut, or a disk mounted anew, without group commit
loses acknowledged records.
"""

import json
from dataclasses import dataclass

from ottla.storage.directory.checkpoint import write_atomically
from ottla.storage.disk.filesystem import FileSystem

RUN_MARKER = "ottla-run"


@dataclass(frozen=True, slots=True)
class RunMarker:
    """One run of a broker. `page_cache_id` is `FileSystem.page_cache_id`."""

    page_cache_id: str
    flushes_first: bool

    def kept_all(self, page_cache_id: str) -> bool:
        """Whether all that the run acknowledged is still there, however it ended."""
        return self.flushes_first or self.kept_cache(page_cache_id)

    def kept_cache(self, page_cache_id: str) -> bool:
        """Whether the run's writes are all still there, flushed or not."""
        return self.page_cache_id != "" and self.page_cache_id == page_cache_id


def read_run_marker(filesystem: FileSystem, path: str) -> RunMarker | None:
    """The marker in the directory at `path`; None where there is none that can be read."""
    try:
        held = json.loads(filesystem.read_bytes(f"{path}/{RUN_MARKER}"))
        return RunMarker(str(held["page_cache"]), held["flushes_first"] is True)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def encode_run_marker(marker: RunMarker) -> bytes:
    """The bytes of the file."""
    held = {
        "version": 1,
        "page_cache": marker.page_cache_id,
        "flushes_first": marker.flushes_first,
    }
    return json.dumps(held).encode()


def write_run_marker(filesystem: FileSystem, path: str, marker: RunMarker) -> None:
    """Replace the marker; the caller makes its name durable. Raises OSError."""
    content = encode_run_marker(marker)
    write_atomically(filesystem, f"{path}/{RUN_MARKER}", content, sync_folder=False)
