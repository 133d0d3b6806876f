"""What the two tables hold, as other programs see it, and a replay of the source in plain Python.

The tables are read by delta-rs from Delta's own log, not by Ottla.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from deltalake import DeltaTable

from demo import flights
from ottla.lake.model.row_hash import batch_hash, hash_text
from ottla.lake.model.schema import ROW_SCHEMA

# So many planes stand in the report, those that flew most.
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Planes:
    """The latest record of each plane: by a replay of the source, and in the table."""

    expected: Mapping[bytes, bytes]
    rows: int
    found: Mapping[bytes, bytes]
    # How many flights of each plane the producer sent, and how many without a tail number.
    sent: Mapping[bytes, int]
    keyless: int

    @property
    def differing(self) -> int:
        """Planes that only one side has, or whose records differ."""
        keys = self.expected.keys() | self.found.keys()
        return sum(self.expected.get(key) != self.found.get(key) for key in keys)

    def shown(self) -> list[tuple[str, str, str, str, int]]:
        """Plane, its latest flight, route and day as the table has them, flights sent."""
        most = sorted(self.found, key=lambda key: (-self.sent.get(key, 0), key))[:_SHOWN]
        return [(key.decode(), *_flight(self.found[key]), self.sent.get(key, 0)) for key in most]


def _flight(value: bytes) -> tuple[str, str, str]:
    row = json.loads(value)
    day = f"{int(row['year'])}-{int(row['month']):02}-{int(row['day']):02}"
    return f"{row['carrier']} {row['flight']}", f"{row['origin']} → {row['dest']}", day


def planes(table: Path) -> Planes:
    """The table of planes, beside what the source says."""
    expected: dict[bytes, bytes] = {}
    sent: Counter[bytes] = Counter()
    keyless = 0
    for key, value in flights.rows():
        if key is None:
            keyless += 1
        else:
            expected[key] = value
            sent[key] += 1
    read = DeltaTable(str(table)).to_pyarrow_table(columns=["key", "value"])
    found = dict(zip(read["key"].to_pylist(), read["value"].to_pylist(), strict=True))
    return Planes(expected, read.num_rows, found, sent, keyless)


def fingerprint(state: Mapping[bytes, bytes]) -> str:
    """A short hash over all keys and values."""
    whole = sha256()
    for key, value in sorted(state.items()):
        whole.update(b"%d %b %d %b " % (len(key), key, len(value), value))
    return whole.hexdigest()[:32]


def rows_and_hash(table: Path) -> tuple[int, str]:
    """Rows of a Delta table, and their hash."""
    read = DeltaTable(str(table)).to_pyarrow_table().select(ROW_SCHEMA.names).cast(ROW_SCHEMA)
    return read.num_rows, hash_text(batch_hash(read))
