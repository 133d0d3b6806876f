"""Records that do not fit into the table's columns as they are."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake import run_here
from ottla.lake.edges.datasource import OttlaSource

MakeTopic = Callable[..., str]


def loaded(target: Path) -> list[dict[str, Any]]:
    return [
        row for path in ottla.lake.files(str(target)) for row in pq.read_table(path).to_pylist()
    ]


def test_a_timestamp_that_does_not_fit_does_not_block_the_table(
    either: Node, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """The load fails with advice that works; what is loaded by it is proven; the source too."""
    topic = make_topic(either, partitions=1, message_timestamp_after_max_ms=str(2**63 - 1))
    producer = Producer({"bootstrap.servers": either.bootstrap, "log_level": 0})
    for number, timestamp in enumerate((1000, 2**62, 3000)):
        producer.produce(topic, b"v%d" % number, timestamp=timestamp, partition=0)
    assert producer.flush(60) == 0
    load = partial(
        ottla.lake.load, topic, str(tmp_path), bootstrap=either.bootstrap, runner=run_here
    )
    with pytest.raises(OttlaError, match=r"offset 1 .*--on-bad-timestamp null") as caught:
        load()
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert load(on_bad_timestamp="null").rows == 3
    assert [row["timestamp"] is None for row in loaded(tmp_path)] == [False, True, False]
    found = ottla.lake.verify(str(tmp_path), bootstrap=either.bootstrap)
    assert (found.problems, found.compared) == ([], 3)

    def read(**options: str) -> int:
        given = {"subscribe": topic, "kafka.bootstrap.servers": either.bootstrap, **options}
        reader: Any = OttlaSource(given).reader(None)
        return sum(batch.num_rows for one in reader.partitions() for batch in reader.read(one))

    with pytest.raises(OttlaError, match="onBadTimestamp"):
        read()
    assert read(onBadTimestamp="null") == 3
