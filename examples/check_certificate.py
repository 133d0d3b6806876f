"""Check a lake certificate without ottla: its sums, its files, and rows hashed by other code.

The hash of a row is specified in `ottla/lake/row_hash.py`; here it is, a row at a time. With an
earlier certificate of the same table, a history that was written anew shows.

    python examples/check_certificate.py certificate.json /lake/flights --earlier last_week.json
"""

import argparse
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore

MASK, GOLDEN, NULL = 2**64 - 1, 0x9E3779B97F4A7C15, 2**64 - 1
TERMS: tuple[str, ...] = (
    "loaded",
    "control",
    "aborted",
    "compacted",
    "deleted",
    "unreadable",
    "absent",
)
TERMS += ("dead_letters", "keyless")
FORMAT = "ottla lake certificate 1"


def mix(x: int) -> int:
    """The mixing step, on 64 bits."""
    x ^= x >> 32
    x = x * 0xD6E8FEB86659FD93 & MASK
    return x ^ x >> 32


@cache
def word_keys(i: int) -> tuple[int, int]:
    """A(i) and B(i)."""
    first, second = ((2 * (i % 4096) + n) * GOLDEN & MASK for n in (1, 2))
    return mix(mix(first)), mix(mix(second)) | 1


def words_of(content: bytes | None) -> tuple[int, int, int]:
    """Length, s and t of a byte string."""
    if content is None:
        return NULL, 0, 0
    s = t = 0
    for i in range(-(-len(content) // 8)):
        a, b = word_keys(i)
        m = mix(int.from_bytes(content[8 * i : 8 * i + 8], "little") ^ (a + i // 4096 & MASK))
        s, t = s + m & MASK, t + m * b & MASK
    return len(content), s, t


def row_hash(row: dict[str, Any]) -> int:
    """The hash of one row in its canonical form."""
    headers = b""
    for header in row["headers"] or ():
        name, value = header["key"].encode(), header["value"]
        length = 2**32 - 1 if value is None else len(value)
        headers += len(name).to_bytes(4, "little") + name + length.to_bytes(4, "little")
        headers += value or b""
    ms = 2**63 if row["timestamp"] is None else row["timestamp"] // 1000 & MASK
    form = [row["partition"], row["offset"], ms, row["timestamp_type"]]
    form += [*words_of(row["key"]), *words_of(row["value"]), *words_of(headers)]
    u = v = 0
    for j, x in enumerate(form):
        a, b = word_keys(j)
        u = mix(u ^ x) + a & MASK
        v = (v + u) * b & MASK
    return mix(u) + (mix(v) << 64)


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, with timestamps as microseconds."""
    for batch in pq.ParquetFile(path).iter_batches(8192):
        at = batch.schema.get_field_index("timestamp")
        yield from batch.set_column(at, "timestamp", batch.column(at).cast("int64")).to_pylist()


def wrong_in_file(path: Path, file: dict[str, Any]) -> Iterator[str]:
    """What a file holds that the certificate does not say."""
    content = path.read_bytes() if path.is_file() else b""
    if (len(content), digest_of(content)) != (file["size_bytes"], file["sha256"]):
        yield f"{path} is missing, or its size or SHA-256 is another"
        return
    rows, last, total = 0, file["start"] - 1, 0
    for row in rows_of(path):
        if not last < row["offset"] < file["end"] or row["partition"] != file["partition"]:
            yield f"{path} holds offset {row['offset']} of partition {row['partition']}"
        rows, last, total = rows + 1, row["offset"], total + row_hash(row)
    if (rows, f"{total % 2**128:032x}") != (file["rows"], file["hash"]):
        yield f"{path} holds other rows than the certificate says"


def digest_of(content: bytes) -> str:
    """The SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def sums(files: Iterable[dict[str, Any]]) -> tuple[int, str]:
    """Rows of files, and their hash."""
    files = list(files)
    total = sum(int(file["hash"], 16) for file in files) % 2**128
    return sum(file["rows"] for file in files), f"{total:032x}"


def wrong_in_loads(known: dict[str, Any], live: dict[str, Any]) -> Iterator[str]:
    """What does not follow in the chain of loads; `live` gets the files that count at its end."""
    ends: dict[str, int] = {}
    digest = None
    for load in known["loads"]:
        what = f"{load['kind']} {load['version']}"
        if load["previous"] != digest:
            yield f"{what} does not follow the load before it"
        digest = load["digest"]
        for one in load["ledgers"] if load["kind"] == "load" else ():
            partition, start, end = str(one["partition"]), one["start"], one["end"]
            account = sum(one.get(term, 0) for term in TERMS)
            is_negative = any(one.get(term, 0) < 0 for term in TERMS)
            if start != ends.get(partition, start) or account != end - start or is_negative:
                yield f"{what} does not account for each offset: {one}"
            for files, term in (("files", "loaded"), ("dead_letters", "dead_letters")):
                of_it = [file for file in load[files] if str(file["partition"]) == partition]
                if sum(file["rows"] for file in of_it) != one.get(term, 0):
                    yield f"{what} has other rows than its ledger of partition {partition}"
                if any(not start <= file["start"] < file["end"] <= end for file in of_it):
                    yield f"{what} has a file outside its ledger of partition {partition}"
            ends[partition] = end
        accounted = {one["partition"] for one in load["ledgers"]}
        if load["kind"] == "load" and {file["partition"] for file in load["files"]} - accounted:
            yield f"{what} has files of a partition that no ledger accounts for"
        gone = [live.pop(path) for path in load["removed"] if path in live]
        names = {file["path"] for file in load["files"]}
        if len(gone) < len(load["removed"]) or len(names) < len(load["files"]) or names & {*live}:
            yield f"{what} removes or adds files that do not count like that"
        if load["kind"] == "compaction" and sums(gone) != sums(load["files"]):
            yield f"{what} changed rows"
        live.update({file["path"]: file for file in load["files"]})
    if ends != known["positions"]:
        yield "the positions are not where the loads end"


def wrong_in_manifest(folder: Path, load: dict[str, Any]) -> Iterator[str]:
    """What the table's own manifest of a load says otherwise than the certificate."""
    paths = list((folder / "_ottla" / "manifests").glob(f"{load['version']:020d}*.json"))
    for path in paths:
        content = path.read_text()
        said = json.loads(content)
        digest = digest_of(content.replace(said["sha256"], "0" * 64, 1).encode())
        if digest == load["digest"] == said["sha256"]:
            ledgers = [(o["partition"], o["start"], o["end"], o["loaded"]) for o in load["ledgers"]]
            in_table = [
                (o["partition"], o["start"], o["end"], o["loaded"]) for o in said["ledgers"]
            ]
            named = [(file["path"], file["sha256"]) for file in load["files"]]
            if ledgers != in_table or named != [(o["path"], o["sha256"]) for o in said["files"]]:
                yield f"{path} has other ledgers or files than the certificate"
            return
    yield f"the table has no manifest of {load['kind']} {load['version']} with its digest"


def wrong(text: str, folder: Path, earlier: dict[str, Any]) -> Iterator[str]:
    """All that does not hold."""
    known = json.loads(text)
    blank = text.replace(known["sha256"], "0" * 64, 1)
    if digest_of(blank.encode()) != known["sha256"] or known["format"] != FORMAT:
        yield "the certificate was changed after it was issued, or has another format"
    if earlier.get("loads", []) != known["loads"][: len(earlier.get("loads", []))]:
        yield "the history of the table is not the one that the earlier certificate tells"
    live: dict[str, Any] = {}
    yield from wrong_in_loads(known, live)
    if sums(live.values()) != (known["rows"], known["hash"]):
        yield "rows or hash are not the sum of the files"
    for path, file in live.items():
        if Path(path).is_absolute() or ".." in Path(path).parts:
            yield f"{path} is not in the table's folder"
            continue
        yield from wrong_in_file(folder / path, file)
    gone = {path for load in known["loads"] for path in load.get("removed_dead_letters", [])}
    for load in known["loads"]:
        for file in load["dead_letters"]:
            content = folder / file["path"]
            if file["path"] in gone:
                continue
            if not content.is_file() or digest_of(content.read_bytes()) != file["sha256"]:
                yield f"{content} is missing, or its SHA-256 is another"
        yield from wrong_in_manifest(folder, load)
    yield from known["verdict"]["problems"]
    if not known["verdict"]["proven"]:
        yield "the table was not proven when the certificate was issued"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("certificate", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--earlier", type=Path)
    given = parser.parse_args()
    before = json.loads(given.earlier.read_text()) if given.earlier else {}
    try:
        found = list(wrong(given.certificate.read_text(), given.table, before))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        found = [f"the certificate is not of format {FORMAT!r}: {error!r}"]
    print("\n".join(found) or "the certificate holds")
    raise SystemExit(bool(found))
