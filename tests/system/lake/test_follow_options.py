"""What a follow has in common with a load: typed columns, dead letters, overrides."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.client import sync
from ottla.lake import Decode, FollowProgress, Format, run_here
from ottla.lake.model.manifest import seal, unseal
from ottla.lake.write.dead_letters import letters_of_table

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


def followed(node: Node, topic: str, target: Path, **arguments: Any) -> list[FollowProgress]:
    """The commits of a follow in this process."""
    commits: list[FollowProgress] = []
    watch = ottla.lake.Observer(on_commit=commits.append)
    given = {"runner": run_here, "every": "100ms", "watch": watch, **arguments}
    ottla.lake.follow(topic, str(target), bootstrap=node.bootstrap, **given)
    return commits


def rows_of(target: Path) -> list[dict[str, Any]]:
    found = [
        row for path in ottla.lake.files(str(target)) for row in pq.read_table(path).to_pylist()
    ]
    return sorted(found, key=lambda row: (row["partition"], row["offset"]))


def test_records_become_typed_columns_and_bad_ones_dead_letters(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The first records decide on columns, later ones add some; each letter is kept once."""
    topic = make_topic(node, partitions=1)

    def send(*values: bytes) -> None:
        with sync.Producer(node.bootstrap) as producer:
            for value in values:
                producer.send(topic, value, partition=0)
            producer.flush()

    send(b'{"id":1}', b"bad")
    decode = Decode(value=Format("json"), on_bad_record="dead-letter")
    stop = threading.Event()

    def on_commit(progress: FollowProgress) -> None:
        if progress.manifest.total_rows == 1:
            send(b'{"id":2,"tag":"t"}', b"worse")
        else:
            stop.set()

    followed(
        node,
        topic,
        tmp_path,
        decode=decode,
        watch=ottla.lake.Observer(stop=stop, on_commit=on_commit),
    )
    send(b"worst")
    followed(node, topic, tmp_path, once=True)
    found = [(row["id"], row.get("tag")) for row in rows_of(tmp_path)]
    assert found == [(1, None), (2, "t")]
    letters = [one.value for one in letters_of_table(str(tmp_path))]
    assert letters == [b"bad", b"worse", b"worst"]
    assert ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap).proven


def test_bad_timestamps_become_dead_letters(
    node: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Also without typed columns."""
    topic = make_topic(node, partitions=1, message_timestamp_after_max_ms=str(2**63 - 1))
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0})
    for timestamp in (1000, 2**62):
        producer.produce(topic, b"v", timestamp=timestamp, partition=0)
    assert producer.flush(60) == 0
    (commit,) = followed(node, topic, tmp_path, once=True, on_bad_timestamp="dead-letter")
    (ledger,) = commit.manifest.ledgers
    assert (ledger.loaded, ledger.dead_letters) == (1, 1)


def test_a_table_that_contradicts_itself_is_followed_by_an_operators_word_only(
    node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """Then from where its ledgers end, with problems and reason on record."""
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 100)
    followed(node, topic, tmp_path, once=True)
    folder = tmp_path / "_ottla" / "manifests"
    path = max(folder.iterdir())
    assert json.loads(path.read_bytes())["positions"] == {"0": 100}
    fields, _ = unseal(path.read_bytes())
    fields["positions"]["0"] = 60
    path.write_bytes(seal(fields))
    for head in (tmp_path / "_ottla" / "heads").iterdir():
        named, _ = unseal(head.read_bytes())
        if named["version"] == fields["version"]:
            named["manifest"] = unseal(path.read_bytes())[1]
            head.write_bytes(seal(named))
    produce(node, topic, 100, 110)
    with pytest.raises(OttlaError, match="--override REASON"):
        followed(node, topic, tmp_path, once=True)
    followed(node, topic, tmp_path, once=True, override="ticket 7")
    assert [row["offset"] for row in rows_of(tmp_path)] == list(range(110))
    proof = ottla.lake.verify(str(tmp_path), bootstrap=node.bootstrap)
    assert proof.problems == []
    assert any("reason: ticket 7" in one for one in proof.overridden)
