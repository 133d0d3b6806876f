"""A portion of a series, without Spark: rivals, time-outs, brokers that die, lost marks."""

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from rig.broker import ottla
from rig.nodes import Node
from rig.probe import free_port

from ottla.base.errors import OttlaError
from ottla.client import PreparedBatch, TopicPartition, sync
from ottla.client.producer.encoded_batch import prepared
from ottla.lake.edges.sink_commit import Series, commit_portion
from ottla.record.builder import BatchBuilder
from tests.system.lake.test_sink import committed

MakeTopic = Callable[..., str]
STEPS = ("id taken over", "mark read", "records sent", "mark added", "committed")
_names = itertools.count()


def series_for(node: Node, **named: int) -> Series:
    return Series(node.bootstrap, f"series-{os.getpid()}-{next(_names)}", **named)


def batches(topic: str, number: int, partitions: int = 2) -> Iterator[PreparedBatch]:
    """One record for each partition, which names its portion."""
    for partition in range(partitions):
        builder = BatchBuilder()
        builder.append(1, None, b"%d" % number)
        yield prepared(topic, partition, builder)


def write(
    series: Series, topic: str, number: int, on_step: Callable[[str], None] = lambda _: None
) -> bool:
    return commit_portion(series, number, batches(topic, number), topic, on_step)


def values(node: Node, topic: str) -> list[list[bytes]]:
    return [[m.value() for m in messages] for messages in committed(node, topic).values()]


def test_portion_that_comes_again_is_skipped(either: Node, make_topic: MakeTopic) -> None:
    """Each is written once, and the mark says which was the last."""
    topic, series = make_topic(either, partitions=2), series_for(either)
    written = [write(series, topic, number) for number in (0, 0, 1, 1, 2, 2)]

    assert written == [True, False] * 3
    assert values(either, topic) == [[b"0", b"1", b"2"]] * 2
    with sync.Admin(either.bootstrap) as admin:
        (mark,) = admin.groups.offsets(series.name).values()
    assert (mark.offset, mark.metadata) == (3, '{"kind": "ottla sink", "number": 2, "records": 2}')


@pytest.mark.parametrize("step", STEPS[:4])
def test_of_two_that_write_one_portion_one_commits_it(
    either: Node, make_topic: MakeTopic, step: str
) -> None:
    """A driver that stood still and its successor, which comes between any two of its steps."""
    topic, series = make_topic(either, partitions=2), series_for(either)
    write(series, topic, 0)
    found: list[bool] = []

    def at(reached: str) -> None:
        if reached == step and not found:
            found.append(write(series, topic, 1))

    if step == "id taken over":
        assert not write(series, topic, 1, at), "the mark is read after the successor committed"
    else:
        with pytest.raises(OttlaError, match="with this id has taken over"):
            write(series, topic, 1, at)
    assert found == [True]
    assert write(series, topic, 2)
    assert values(either, topic) == [[b"0", b"1", b"2"]] * 2


def test_successor_that_comes_before_the_mark_is_read_changes_nothing(
    node: Node, make_topic: MakeTopic
) -> None:
    """Of a successor that only took over and died the portion is not there: it is written then."""
    topic, series = make_topic(node, partitions=2), series_for(node)

    def dies(reached: str) -> None:
        if reached == "records sent":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(series, topic, 0, dies)
    assert write(series, topic, 0)
    assert values(node, topic) == [[b"0"]] * 2


def test_portion_that_takes_too_long_is_not_visible_and_can_come_again(
    node: Node, make_topic: MakeTopic
) -> None:
    """The coordinator ends the transaction between the records and the mark."""
    topic = make_topic(node, partitions=2)
    series = series_for(node, transaction_timeout_ms=500)

    def wait_for_its_end(reached: str) -> None:
        if reached == "records sent":
            deadline_s = time.monotonic() + 120
            with sync.Admin(node.bootstrap) as admin:
                while admin.transactions.describe([series.name])[series.name].state != (
                    "CompleteAbort"
                ):
                    assert time.monotonic() < deadline_s
                    time.sleep(0.05)

    with pytest.raises(OttlaError, match="took longer than transaction_timeout_ms"):
        write(series, topic, 0, wait_for_its_end)
    assert values(node, topic) == [[], []]
    assert write(series_for(node), topic, 0)
    assert values(node, topic) == [[b"0"]] * 2


def test_mark_that_is_gone_stops_the_series_until_told(node: Node, make_topic: MakeTopic) -> None:
    """As after offsets.retention.minutes: nothing is guessed, the error names the option."""
    topic, series = make_topic(node, partitions=2), series_for(node)
    write(series, topic, 0)
    write(series, topic, 1)
    with sync.Admin(node.bootstrap) as admin:
        admin.groups.delete_offsets(series.name, [TopicPartition(topic, 0)])
    for number in (1, 2):
        with pytest.raises(
            OttlaError, match=f'no mark of .*"firstEpoch", "{series.name}:{number}"'
        ):
            write(series, topic, number)
    told = Series(series.bootstrap, series.name, first=2)
    assert [write(told, topic, number) for number in (1, 2, 2, 3)] == [False, True, False, True]
    assert values(node, topic) == [[b"0", b"1", b"2", b"3"]] * 2


def test_empty_portion_leaves_its_mark(either: Node, make_topic: MakeTopic) -> None:
    """Also the first one, of a series whose rows name their topics: the next one follows it."""
    topic, series = make_topic(either, partitions=2), series_for(either)

    def portion(number: int, made: Iterable[PreparedBatch]) -> bool:
        return commit_portion(series, number, made, None, lambda _: None)

    empty = [portion(number, ()) for number in (0, 0, 1)]
    full = [portion(number, batches(topic, number)) for number in (2, 2)]
    assert (empty, full) == ([True, False, True], [True, False])
    assert values(either, topic) == [[b"2"]] * 2


def test_portion_is_exact_while_the_broker_is_killed_between_any_two_steps(
    make_topic: MakeTopic,
) -> None:
    """kill -9 after each step, and back again: the portion is committed, or can come again."""
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        folder = Path(home) / "broker"
        contexts = [ottla(folder=folder, port=port)]
        node = contexts[0].__enter__()
        topic, series = make_topic(node, partitions=2), series_for(node)

        for number, step in enumerate(STEPS):

            def bounce(reached: str, wanted: str = step) -> None:
                nonlocal node
                if reached == wanted:
                    node.process.kill()
                    contexts.append(ottla(folder=folder, port=port))
                    node = contexts[-1].__enter__()

            try:
                assert write(series, topic, number, bounce)
            except OttlaError:
                write(series, topic, number)
            assert not write(series, topic, number)
        expected = [b"%d" % number for number in range(len(STEPS))]
        assert values(node, topic) == [expected] * 2
        node.process.kill()
