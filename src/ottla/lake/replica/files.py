"""The files of a partition's log in a log directory of Ottla or Apache Kafka, opened to be read.

A broker may write and delete them meanwhile. What is below the high watermark does not change but
by compaction and deletion, and an open file stays as it was.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from uuid import UUID

from ottla.record.header import HEADER_SIZE, BatchHeader
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
CHUNK_BYTES = 8 << 20


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
        file.seek(_place_before(folder, base, position))
        rest, wanted = b"", CHUNK_BYTES
        while read := file.read(wanted):
            buffer = rest + read if rest else read
            found = list(batches(buffer))
            end = found[-1][0] + found[-1][1].size if found else 0
            rest = buffer[end:]
            # Of what is left the header says how much is missing.
            wanted = max(CHUNK_BYTES, _missing(rest))
            kept = [(place, header) for place, header in found if header.last_offset >= position]
            if kept:
                first = kept[0][0]
                yield (
                    (buffer, kept)
                    if first == 0
                    else (buffer[first:], [(place - first, header) for place, header in kept])
                )


def _missing(rest: bytes) -> int:
    if len(rest) < HEADER_SIZE:
        return 0
    return int.from_bytes(rest[8:12], "big") + 12 - len(rest)


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
