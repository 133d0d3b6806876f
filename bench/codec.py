"""Records of 100 bytes through the codec: to objects, from lists, to rows of positions.

Measures what is built; where that is the plain form, the note says so and the bounds do not hold.
"""

import statistics
import time
from collections.abc import Callable

from bench.figures import AT_MOST, Figure, Scale, spread
from ottla import _compiled
from ottla.record.builder import build_batch, encode_records
from ottla.record.codec import decode_records
from ottla.record.header import computed_crc
from ottla.record.validation import validate
from ottla.record.walk import walk
from ottla.storage.segment.config import LogConfig

_NOW_MS = 1_700_000_000_000
_BATCH_RECORDS = 1000
_VALUE_BYTES = 100


def measure(scale: Scale) -> list[Figure]:
    times = [_NOW_MS + index // 10 for index in range(_BATCH_RECORDS)]
    values: list[bytes | None] = [
        index.to_bytes(4, "big") * (_VALUE_BYTES // 4) for index in range(_BATCH_RECORDS)
    ]
    section = encode_records(times, None, values)
    note = _form()

    def rate(name: str, work: Callable[[], object], bound: float | None = None) -> Figure:
        seconds = _times(work, scale, _BATCH_RECORDS)
        rates = [1 / each / 1e6 for each in seconds]
        return Figure(
            name,
            statistics.median(rates),
            "M records/s",
            bound=bound,
            note=f"{note}; {spread(rates)}",
        )

    return [
        rate(
            "codec: decode to records",
            lambda: decode_records(section, _BATCH_RECORDS, 0, _NOW_MS),
            8,
        ),
        rate("codec: encode from lists", lambda: encode_records(times, None, values), 5),
        rate(
            "codec: walk to rows of positions",
            lambda: walk(section, 0, len(section), _BATCH_RECORDS, 0, _NOW_MS),
            8,
        ),
        _validation(scale, note),
    ]


def _validation(scale: Scale, note: str) -> Figure:
    """A leader's check of an 8 KiB batch, less the checksum in it."""
    batch = memoryview(build_batch([_NOW_MS] * 76, None, [bytes(_VALUE_BYTES)] * 76))
    config = LogConfig()
    whole = _times(lambda: validate(batch, config, _NOW_MS), scale, 1)
    checksum = _times(lambda: computed_crc(batch, 0, len(batch)), scale, 1)
    cost = (statistics.median(whole) - statistics.median(checksum)) * 1e6
    return Figure(
        "codec: validate an 8 KiB batch, checksum aside",
        cost,
        "µs",
        AT_MOST,
        2,
        f"{note}; checksum {statistics.median(checksum) * 1e6:.2f} µs",
    )


def _times(work: Callable[[], object], scale: Scale, items: int) -> list[float]:
    """Seconds for each item, one value a round."""
    repeats = scale.pick(500_000, 20_000) // max(items, 5)
    found = []
    for _ in range(scale.warm_up_rounds + scale.rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        found.append((time.perf_counter() - start) / repeats / items)
    return found[scale.warm_up_rounds :]


def _form() -> str:
    """Which form of the codec this is."""
    if all(_compiled.status().values()) and _compiled.status():
        return "compiled"
    return f"plain form ({_compiled.reason() or 'nothing is compiled'})"
