"""Check a lake certificate without ottla: its sums, its files, and rows hashed by other code.

Of a Delta or an Iceberg table it also compares the files that readers see by the table's log, which
deltalake or pyiceberg reads.

The hash of a row is specified in `ottla/lake/model/row_hash.py`; here it is, a row at a
time. With an earlier certificate of the same table, a history that was written anew shows.

    python examples/check_certificate.py certificate.json /lake/flights --earlier last_week.json
"""

import argparse
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa  # type: ignore
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
FIELDS = {"format", "sha256", "issued_ms", "ottla", "table", "topic", "topic_id", "cluster_id"}
FIELDS |= {"verdict", "positions", "rows", "hash", "loads"}
VERDICT = {"proven", "compared", "only_in_lake", "topic_was_read", "problems", "overridden"}
# Of what stands in a certificate.
NOT_CHECKED = """; not checked here:
when, where (table) and by which version (ottla) it was issued; typed columns; what a format's log
says of files but their names (statistics, values of partitions); what the verdict says of the topic
(topic_was_read, compared, only_in_lake): `ottla lake verify` compares again. Who may write all of
the table may make another certificate that holds: keep an earlier one elsewhere (--earlier)."""


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


def wrong_in_file(
    path: Path, file: dict[str, Any], topic: str, met: dict[int, set[int]]
) -> Iterator[str]:
    """What a file holds that the certificate does not say; `met` gets its offsets, by partition."""
    content = path.read_bytes() if path.is_file() else b""
    if (len(content), digest_of(content)) != (file["size_bytes"], file["sha256"]):
        yield f"{path} is missing, or its size or SHA-256 is another"
        return
    if "row_hash" in pq.read_schema(path).names:
        yield f"{path} keeps hashes of rows only (--drop-raw), which `ottla lake verify` checks"
        return
    rows, last, total = 0, file["start"] - 1, 0
    offsets = met.setdefault(file["partition"], set())
    for row in rows_of(path):
        offset = row["offset"]
        if not last < offset < file["end"] or row["partition"] != file["partition"]:
            yield f"{path} holds offset {offset} of partition {row['partition']}"
        if offset in offsets:
            yield f"{path} holds offset {offset} of partition {file['partition']} once more"
        if row["topic"] != topic:
            yield f"{path} holds a row of topic {row['topic']}"
        offsets.add(offset)
        rows, last, total = rows + 1, offset, total + row_hash(row)
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


def by_partition(files: Iterable[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """The files of each partition."""
    found: dict[int, list[dict[str, Any]]] = {}
    for file in files:
        found.setdefault(file["partition"], []).append(file)
    return found


def wrong_in_ledgers(load: dict[str, Any], ends: dict[str, int]) -> Iterator[str]:
    """What the ledgers of a load, or of a replacement, do not account for. Moves `ends` on."""
    what, is_load = f"{load['kind']} {load['version']}", load["kind"] == "load"
    lost, left_out = dict(load["accepted_loss"]), 0
    for one in load["ledgers"]:
        partition, start, end = str(one["partition"]), one["start"], one["end"]
        account = sum(one.get(term, 0) for term in TERMS)
        is_negative = any(one.get(term, 0) < 0 for term in TERMS)
        at = ends.get(partition, start if is_load else -1)
        follows = start == at if is_load else end <= at
        if not follows or account != end - start or is_negative:
            yield f"{what} does not account for each offset: {one}"
        for files, term in (("files", "loaded"), ("dead_letters", "dead_letters")):
            of_it = by_partition(load[files]).get(one["partition"], [])
            if sum(file["rows"] for file in of_it) != one.get(term, 0):
                yield f"{what} has other rows than its ledger of partition {partition}"
            if any(not start <= file["start"] < file["end"] <= end for file in of_it):
                yield f"{what} has a file outside its ledger of partition {partition}"
        skipped = [o for o in load["skipped"] if o["partition"] == one["partition"]]
        left_out += len(skipped)
        if sum(o["end"] - o["start"] for o in skipped) != one.get("unreadable", 0):
            yield f"{what} left out other offsets of partition {partition} than its ledger counts"
        if is_load and not 0 <= lost.pop(partition, 0) <= one.get("deleted", 0):
            yield f"{what} accepts the loss of more of partition {partition} than was deleted"
        if is_load:
            ends[partition] = end
    accounted = [one["partition"] for one in load["ledgers"]]
    named = {file["partition"] for file in (*load["files"], *load["dead_letters"])}
    is_whole = len({*accounted}) == len(accounted) and left_out == len(load["skipped"])
    if named - {*accounted} or not is_whole:
        yield f"{what} has files of a partition that no ledger accounts for"
    if lost and is_load:
        yield f"{what} accepts a loss of a partition that no ledger accounts for"


def wrong_in_change(
    load: dict[str, Any], gone: list[dict[str, Any]], added: list[dict[str, Any]]
) -> Iterator[str]:
    """What a commit removes or adds of rows, or of dead letters, that one of its kind does not."""
    what = f"{load['kind']} {load['version']}"
    if load["kind"] == "compaction":
        before, after = by_partition(gone), by_partition(added)
        for partition in before.keys() | after.keys():
            old, new = before.get(partition, []), after.get(partition, [])
            starts, ends = [one["start"] for one in old], [one["end"] for one in old]
            is_within = old and all(
                min(starts) <= one["start"] < one["end"] <= max(ends) for one in new
            )
            if sums(old) != sums(new) or not is_within:
                yield f"{what} changed rows"
    elif load["kind"] == "replacement":
        ranges = {one["partition"]: (one["start"], one["end"]) for one in load["ledgers"]}
        for file in gone:
            start, end = ranges.get(file["partition"], (0, 0))
            if not start <= file["start"] < file["end"] <= end:
                yield f"{what} removes {file['path']}, which no ledger of it accounts for"
    elif gone:
        yield f"{what} removes rows"


def wrong_in_loads(
    loads: Iterable[dict[str, Any]],
    ends: dict[str, int],
    live: dict[str, Any],
    letters: dict[str, Any],
    digest: str | None,
) -> Iterator[str]:
    """What does not follow in a chain of loads after the one with `digest`.

    `ends`, `live` and `letters` get the positions, the files and the files of dead letters that
    count at its end.
    """
    for load in loads:
        kind, what = load["kind"], f"{load['kind']} {load['version']}"
        if load["previous"] != digest:
            yield f"{what} does not follow the load before it"
        digest = load["digest"]
        if kind not in ("load", "replacement", "compaction", "epoch"):
            yield f"{what} is of a kind that a table of all rows does not have"
        if kind in ("load", "replacement"):
            yield from wrong_in_ledgers(load, ends)
        elif any(load[name] for name in ("ledgers", "accepted_loss", "skipped")):
            yield f"{what} accounts for offsets, which one of its kind does not"
        if kind == "epoch" and (load["files"] or load["dead_letters"]):
            yield f"{what} adds rows"
        for counted, adds, removes in (
            (live, "files", "removed"),
            (letters, "dead_letters", "removed_dead_letters"),
        ):
            gone = [counted.pop(path) for path in load[removes] if path in counted]
            names = {file["path"] for file in load[adds]}
            if len(gone) < len(load[removes]) or len(names) < len(load[adds]) or names & {*counted}:
                yield f"{what} removes or adds files that do not count like that"
            yield from wrong_in_change(load, gone, load[adds])
            counted.update({file["path"]: file for file in load[adds]})


def manifests_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The table's own manifests by their digests, which are those of their bytes."""
    found = {}
    for path in (folder / "_ottla" / "manifests").glob("*.json"):
        content = path.read_text()
        said = json.loads(content)
        digest = digest_of(content.replace(said["sha256"], "0" * 64, 1).encode())
        if digest == said["sha256"]:
            found[digest] = said
    return found


def load_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """What a certificate says of the commit of a manifest."""
    names = ("version", "kind", "previous", "load_id", "created_ms", "files", "dead_letters")
    found = {name: manifest.get(name) for name in (*names, "accepted_loss", "skipped")}
    found["ledgers"] = [{**one, "reported": None} for one in manifest["ledgers"]]
    for name in ("removed", "removed_dead_letters"):
        found[name] = [file["path"] for file in manifest.get(name, ())]
    return {**found, "digest": manifest["sha256"]}


def plain(value: Any) -> Any:
    """The value without what is empty, zero or null: an older manifest does not have it at all."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one}
    return [plain(one) for one in value] if isinstance(value, list) else value


def wrong_in_manifests(
    known: dict[str, Any], manifests: dict[str, dict[str, Any]]
) -> Iterator[str]:
    """What the table's own manifests say otherwise than the certificate."""
    newest: dict[str, Any] = {}
    for load in known["loads"]:
        newest = manifests.get(load["digest"], {})
        if not newest:
            yield f"the table has no manifest of {load['kind']} {load['version']} with its digest"
        elif plain(load_of(newest)) != plain(load):
            yield f"the manifest of {load['kind']} {load['version']} says otherwise"
    for name in ("topic", "topic_id", "cluster_id", "positions"):
        if newest and newest[name] != known[name]:
            yield f"{name} is another one in the table's newest manifest: {newest[name]}"
    overridden = any(manifests.get(load["digest"], {}).get("overridden") for load in known["loads"])
    if overridden is not bool(known["verdict"]["overridden"]):
        yield "the verdict has other overridden problems than the manifests"


def paths_in_log(folder: Path) -> set[str] | None:
    """The files that readers of the table see by Delta's or Iceberg's log; None without one.

    Raises ValueError where the log takes rows out of files, and ImportError without a reader.
    """
    if (folder / "_delta_log").is_dir():
        return paths_in_delta(folder)
    if (folder / "metadata").is_dir():
        reader = import_module("pyiceberg.table").StaticTable
        metadata = reader.from_metadata(iceberg_metadata(folder))
        tasks = list(metadata.scan().plan_files())
        if any(task.delete_files for task in tasks):
            raise ValueError("takes rows out of files, by files of deletes")
        return {task.file.file_path.removeprefix(f"{metadata.location()}/") for task in tasks}
    return None


def paths_in_delta(folder: Path) -> set[str]:
    """The files by Delta's log. Raises as `paths_in_log` does."""
    delta_error = import_module("deltalake.exceptions").DeltaError
    try:
        table = import_module("deltalake").DeltaTable(str(folder))
        metadata, features = table.metadata(), table.protocol().reader_features or ()
        if "deletionVectors" in features:
            raise ValueError("may take rows out of files, by deletion vectors")
        if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
            raise ValueError("reads columns under other names, by column mapping")
        more = {*metadata.partition_columns} - {"event_day", "event_hour", "event_month"}
        if more:
            raise ValueError(f"takes {', '.join(sorted(more))} from itself and not from the files")
        names = pa.table(table.get_add_actions(flatten=True))["path"].to_pylist()
    except (delta_error, pa.ArrowException, OSError) as error:
        raise ValueError(f"can't be read: {error}") from error
    return {unquote(name) for name in names}


def iceberg_metadata(folder: Path) -> str:
    """Where the newest metadata is: what the catalog in the folder says, else the highest number.

    A catalog elsewhere may say otherwise.
    """
    catalog = folder / "_ottla" / "catalog.db"
    if catalog.is_file():
        with closing(sqlite3.connect(f"{catalog.resolve().as_uri()}?mode=ro", uri=True)) as rows:
            ((found,),) = rows.execute("SELECT metadata_location FROM iceberg_tables")
            return str(found)
    return str(max((folder / "metadata").glob("*.metadata.json")))


def wrong_in_log(folder: Path, counted: Iterable[str]) -> Iterator[str]:
    """How the files that readers see by the format's log differ from those that count."""
    try:
        seen = paths_in_log(folder)
    except ImportError as error:
        yield f"the table's log is not checked: install {error.name}"
        return
    except ValueError as error:
        yield f"the table's log {error}"
        return
    if seen is not None and seen != {*counted}:
        gone, more = sorted({*counted} - seen), sorted(seen - {*counted})
        yield f"readers by the table's log do not see {gone}, and see {more} that do not count"


def wrong_in_verdict(known: dict[str, Any]) -> Iterator[str]:
    """What the verdict says that the rest of the certificate contradicts."""
    verdict = known["verdict"]
    yield from verdict["problems"]
    if verdict["proven"] is not True:
        yield "the table was not proven when the certificate was issued"
    numbers = [verdict["compared"], verdict["only_in_lake"]]
    letters = sum(one.get("dead_letters", 0) for load in known["loads"] for one in load["ledgers"])
    most = known["rows"] + letters if verdict["topic_was_read"] is True else 0
    if min(numbers) < 0 or sum(numbers) > most:
        yield "the verdict compared more rows with the topic than there are"


def wrong_in_text(text: str, known: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the document as such."""
    blank = text.replace(known["sha256"], "0" * 64, 1)
    if digest_of(blank.encode()) != known["sha256"] or known["format"] != FORMAT:
        yield "the certificate was changed after it was issued, or has another format"
    # Also a name that stands twice, of which a reader may see the other.
    if json.dumps(json.loads(text, parse_float=str), indent=1) != text.rstrip():
        yield "the certificate is not written as its format says"
    if {*known} != FIELDS or {*known["verdict"]} != VERDICT:
        yield "the certificate has fields that its format does not have, or lacks some"


def wrong_in_earlier(text: str, known: dict[str, Any]) -> Iterator[str]:
    """What an earlier certificate tells otherwise, or does not tell."""
    earlier = json.loads(text)
    if not isinstance(earlier, dict) or {*earlier} != FIELDS or not earlier["loads"]:
        yield "the earlier certificate is none, or has no load to compare"
        return
    ends: dict[str, int] = {}
    live: dict[str, Any] = {}
    found = [*wrong_in_text(text, earlier)]
    found += wrong_in_loads(earlier["loads"], ends, live, {}, None)
    same = ends == earlier["positions"]
    if found or not same or sums(live.values()) != (earlier["rows"], earlier["hash"]):
        yield "the earlier certificate contradicts itself, or was changed after it was issued"
    if earlier["loads"] != known["loads"][: len(earlier["loads"])]:
        yield "the history of the table is not the one that the earlier certificate tells"


def wrong(text: str, folder: Path, earlier: str | None = None) -> Iterator[str]:
    """All that does not hold; `earlier` is the text of an earlier certificate."""
    known = json.loads(text)
    yield from wrong_in_text(text, known)
    if earlier is not None:
        yield from wrong_in_earlier(earlier, known)
    ends: dict[str, int] = {}
    live: dict[str, Any] = {}
    letters: dict[str, Any] = {}
    yield from wrong_in_loads(known["loads"], ends, live, letters, None)
    if ends != known["positions"]:
        yield "the positions are not where the loads end"
    if sums(live.values()) != (known["rows"], known["hash"]):
        yield "rows or hash are not the sum of the files"
    met: dict[int, set[int]] = {}
    for path, file in (*live.items(), *letters.items()):
        if Path(path).is_absolute() or ".." in Path(path).parts:
            yield f"{path} is not in the table's folder"
            continue
        yield from wrong_in_file(folder / path, file, known["topic"], met)
    manifests = manifests_of(folder)
    yield from wrong_in_manifests(known, manifests)
    # Loads that came since: readers see theirs, too.
    version, digest = ([(0, None)] + [(o["version"], o["digest"]) for o in known["loads"]])[-1]
    later = [load_of(one) for one in manifests.values() if one["version"] > version]
    later.sort(key=lambda load: int(load["version"]))
    yield from wrong_in_loads(later, ends, live, letters, digest)
    yield from wrong_in_log(folder, live)
    yield from wrong_in_verdict(known)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("certificate", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--earlier", type=Path)
    given = parser.parse_args()
    before = given.earlier.read_text() if given.earlier else None
    try:
        found = list(wrong(given.certificate.read_text(), given.table, before))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        found = [f"the certificate is not of format {FORMAT!r}: {error!r}"]
    print("\n".join(found) or f"the certificate holds{NOT_CHECKED}")
    raise SystemExit(bool(found))
