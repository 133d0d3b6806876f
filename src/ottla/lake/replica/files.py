"""The files of a partition's log in a log directory of Ottla or Apache Kafka, opened to be read.

A broker may write and delete them meanwhile. What is below the high watermark does not change but
by compaction and deletion, and an open file stays as it was.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from uuid import UUID

from ottla.base.system import pread
from ottla.record.header import BatchHeader, read_header
from ottla.record.reader import batches
from ottla.storage.directory.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    parse_segment_file,
    segment_file,
)
from ottla.storage.directory.partition_metadata import decode

_ENTRY = Struct(">ii")
# Read at once; a larger batch is read whole.
CHUNK_BYTES = 4 << 20


def find_folder(log_dirs: Sequence[str], topic: str, partition: int, topic_id: str) -> Path | None:
    """The partition's folder in one of the directories, if it holds the topic with that id."""
    for log_dir in log_dirs:
        folder = Path(log_dir) / f"{topic}-{partition}"
        try:
            if decode((folder / PARTITION_METADATA).read_bytes()) == UUID(topic_id):
                return folder
        except (OSError, ValueError):
            continue
    return None


def chunks(folder: Path, position: int) -> Iterator[tuple[bytes, list[tuple[int, BatchHeader]]]]:
    """Yield whole batches from the one that holds `position` on, with their places and headers.

    Ends at the end of the log, at a batch that is not whole, and at a gap between files. Raises
    OSError, and CorruptBatch at a header that is damaged.
    """
    while True:
        base = _segment_of(folder, position)
        if base is None:
            return
        ended = True
        for buffer, found in _segment_chunks(folder, base, position):
            position = found[-1][1].last_offset + 1
            ended = False
            yield buffer, found
        following = _segment_of(folder, position)
        if ended and (following is None or following == base):
            return


def _segment_of(folder: Path, position: int) -> int | None:
    """The base offset of the segment that `position` is in, or the first one behind it."""
    names = (parse_segment_file(path.name) for path in folder.iterdir())
    bases = sorted(name[0] for name in names if name is not None and name[1] == LOG_SUFFIX)
    if not bases:
        return None
    return bases[max(0, bisect_right(bases, position) - 1)]


def _segment_chunks(
    folder: Path, base: int, position: int
) -> Iterator[tuple[bytes, list[tuple[int, BatchHeader]]]]:
    with (folder / segment_file(base, LOG_SUFFIX)).open("rb", buffering=0) as file:
        place, wanted = _place_before(folder, base, position), CHUNK_BYTES
        # Hot: each piece is read from a batch's begin on, so that nothing is joined or copied.
        while buffer := pread(file.fileno(), wanted, place):
            found = list(batches(buffer))
            if not found:
                if len(buffer) < wanted:
                    return  # Not whole: it is being written, or was cut by a crash.
                wanted = read_header(buffer).size
                continue
            place += found[-1][0] + found[-1][1].size
            wanted = CHUNK_BYTES
            kept = [one for one in found if one[1].last_offset >= position]
            if len(kept) == len(found):
                yield buffer, found
            elif kept:
                first = kept[0][0]
                yield buffer[first:], [(at - first, header) for at, header in kept]


def _place_before(folder: Path, base: int, position: int) -> int:
    """A place in the segment where a batch begins that is not behind `position`.

    By the offset index, whose entries count as far as they rise: Kafka fills up the file of the
    active segment with zeros.
    """
    try:
        encoded = (folder / segment_file(base, OFFSET_INDEX_SUFFIX)).read_bytes()
    except OSError:
        return 0
    entries = _ENTRY.iter_unpack(encoded[: len(encoded) - len(encoded) % _ENTRY.size])
    last, place = -1, 0
    for relative, entry_place in entries:
        if relative <= last or base + relative > position:
            break
        last, place = relative, entry_place
    return place
