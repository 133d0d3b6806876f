"""A load into a bucket by real Spark: proven against the topic, read back by other engines."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow.fs import S3FileSystem
from rig.nodes import Node
from rig.s3 import KEY, REGION, SECRET, S3Server

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import run_here
from ottla.lake.store.targets import open_store
from tests.integration.lake_stores.servers import BUCKET, s3_server

__all__ = ["s3_server"]

MakeTopic = Callable[..., str]
Produce = Callable[..., None]
_numbers = itertools.count(1)


@pytest.fixture
def bucket(s3_server: S3Server) -> tuple[str, dict[str, str]]:
    """A target, and options that hold also in workers which were started before the server."""
    options = {
        "aws_endpoint": s3_server.endpoint,
        "aws_region": REGION,
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
    }
    return f"s3://{BUCKET}/load-{next(_numbers)}", options


def values(server: S3Server, target: str, options: dict[str, str]) -> list[bytes]:
    plain = S3FileSystem(
        access_key=KEY, secret_key=SECRET, region=REGION, endpoint_override=server.endpoint
    )
    paths = ottla.lake.files(target, store_options=options)
    tables = [pq.read_table(path.removeprefix("s3://"), filesystem=plain) for path in paths]
    return sorted(value for table in tables for value in table["value"].to_pylist())


def test_spark_loads_into_a_bucket(
    node: Node,
    spark: Any,
    make_topic: MakeTopic,
    produce: Produce,
    s3_server: S3Server,
    bucket: tuple[str, dict[str, str]],
) -> None:
    """Twice, the second time only what is new; pyarrow reads the objects, verify the proof."""
    target, options = bucket
    topic = make_topic(node, partitions=3)
    for first, last in ((0, 500), (500, 800)):
        produce(node, topic, first, last)
        done = ottla.lake.load(
            topic,
            target,
            bootstrap=node.bootstrap,
            spark_session=spark,
            store_options=options,
        )
        assert done.rows == last - first
    assert values(s3_server, target, options) == sorted(b"v%d" % n for n in range(800))
    found = ottla.lake.verify(target, bootstrap=node.bootstrap, store_options=options)
    assert (found.problems, found.compared, found.uncounted) == ([], 800, [])
    content = open_store(target, options).read("_ottla/manifests/00000000000000000002.json")
    assert SECRET.encode() not in content
    assert b"aws" not in content


def test_failed_tasks_of_spark_leave_nothing_in_the_bucket(
    node: Node,
    spark: Any,
    make_topic: MakeTopic,
    produce: Produce,
    bucket: tuple[str, dict[str, str]],
) -> None:
    """One sentence, with the store's reason."""
    target, options = bucket
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 100)
    load = ottla.lake.load
    wrong = {**options, "aws_secret_access_key": "wrong"}
    with pytest.raises(OttlaError, match="refuses access"):
        load(topic, target, bootstrap=node.bootstrap, spark_session=spark, store_options=wrong)

    def run_without_rights(planned: Sequence[Any]) -> list[Any]:
        from dataclasses import replace

        from ottla.lake.job.on_spark import run_on_spark

        wrongly = [replace(one, store=open_store(target, wrong)) for one in planned]
        return run_on_spark(spark, wrongly)

    with pytest.raises(OttlaError, match=r"a task failed: s3://.* refuses access") as refused:
        load(
            topic,
            target,
            bootstrap=node.bootstrap,
            store_options=options,
            runner=run_without_rights,
        )
    assert "\n" not in refused.value.message
    store = open_store(target, options)
    assert (store.names("data/"), store.names("_ottla/running/")) == ([], [])
    done = load(topic, target, bootstrap=node.bootstrap, store_options=options, runner=run_here)
    assert done.rows == 100
