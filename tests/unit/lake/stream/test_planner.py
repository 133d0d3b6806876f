"""How a stream goes on: limits, targets, new partitions; and what stops it."""

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.common.errors import ConnectionFailed
from ottla.lake.model.plan import PartitionBounds
from ottla.lake.source.cluster import LogPosition, TopicBounds, TopicEnds
from ottla.lake.source.planner import StreamPlanner
from ottla.lake.source.source_options import parse_options
from ottla.lake.source.stream_offset import Key, StreamOffset


class MemoryCluster:
    """Topics as (id, partition → (log start, [(leader epoch, end)]))."""

    def __init__(self) -> None:
        self.topics: dict[str, tuple[str, dict[int, tuple[int, list[LogPosition]]]]] = {}
        self.is_reachable = True

    def put(self, topic: str, topic_id: str, partition: int, end: int, epoch: int = 0) -> None:
        """Let the partition's log end there, in that leader epoch."""
        known_id, logs = self.topics.get(topic, (topic_id, {}))
        start, epochs = logs.get(partition, (0, []))
        kept = [one for one in epochs if one[1] < epoch]
        logs[partition] = (start, [*kept, LogPosition(end, epoch)])
        self.topics[topic] = (topic_id, logs if known_id == topic_id else {partition: (0, kept)})

    def topic_names(self) -> list[str]:
        return sorted(self.topics)

    def ends(self, topic: str) -> TopicEnds:
        if not self.is_reachable:
            raise ConnectionFailed("no broker")
        topic_id, logs = self.topics[topic]
        return TopicEnds(topic_id, {p: epochs[-1] for p, (_, epochs) in logs.items()})

    def log_starts(self, topic: str) -> dict[int, int]:
        return {p: start for p, (start, _) in self.topics[topic][1].items()}

    def high_watermarks(self, topic: str) -> dict[int, int]:
        return {p: end.offset for p, end in self.ends(topic).ends.items()}

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> dict[int, int]:
        """The start of the next leader epoch, which is where the one before ends."""
        logs = self.topics[topic][1]
        return {
            p: max([end.offset for end in logs[p][1] if end.leader_epoch <= epoch], default=-1)
            for p, epoch in epochs.items()
        }

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[int, int]:
        return {}

    def describe(self, topic: str) -> TopicBounds:
        found, starts = self.ends(topic), self.log_starts(topic)
        bounds = {p: PartitionBounds(starts[p], end.offset) for p, end in found.ends.items()}
        return TopicBounds(topic, found.topic_id, None, bounds, compacted=False)

    def close(self) -> None:
        """Nothing to close."""


class Times:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def planner(cluster: Any, times: Times | None = None, **options: str) -> StreamPlanner:
    times = times or Times()
    parsed = parse_options({"subscribe": "t"} | options)
    return StreamPlanner(parsed, {}, lambda _: cluster, lambda: times.now_s, times.sleep)


def offsets(found: StreamOffset) -> dict[tuple[str, int], int]:
    return {(key.topic, key.partition): place.offset for key, place in found.places.items()}


@pytest.fixture
def cluster() -> MemoryCluster:
    found = MemoryCluster()
    found.put("t", "id", 0, 100)
    found.put("t", "id", 1, 10)
    return found


def test_it_goes_on_within_its_limits_until_nothing_is_new(cluster: MemoryCluster) -> None:
    plans = planner(cluster, maxOffsetsPerTrigger="40")
    at = plans.initial()
    steps = []
    while (after := plans.latest(at, limited=True)) != at:
        at = after
        steps.append(offsets(at))
    assert steps == [
        {("t", 0): 30, ("t", 1): 10},
        {("t", 0): 70, ("t", 1): 10},
        {("t", 0): 100, ("t", 1): 10},
    ]
    assert at.places[Key("t", 0)] == LogPosition(100, 0)
    assert offsets(plans.latest(plans.initial(), limited=False)) == {("t", 0): 100, ("t", 1): 10}


def test_start_and_its_words(cluster: MemoryCluster) -> None:
    assert offsets(planner(cluster, startingOffsets="latest").initial()) == {
        ("t", 0): 100,
        ("t", 1): 10,
    }
    assert offsets(planner(cluster, startingOffsets='{"t": {"0": 7}}').initial()) == {
        ("t", 0): 7,
        ("t", 1): 0,
    }


def test_a_target_is_reached_and_not_passed(cluster: MemoryCluster) -> None:
    plans = planner(cluster)
    at = plans.initial()
    plans.fix_target()
    cluster.put("t", "id", 0, 500)
    cluster.put("t", "id", 2, 5)
    reached = plans.latest(at, limited=False)
    assert offsets(reached) == {("t", 0): 100, ("t", 1): 10}
    assert plans.latest(reached, limited=False) is reached


def test_partitions_and_topics_that_come_later_are_read_from_their_start(
    cluster: MemoryCluster,
) -> None:
    """Also where the stream began at the latest offset, and where they are empty so far."""
    plans = planner(cluster, subscribe="", subscribePattern="t.*", startingOffsets="latest")
    at = plans.initial()
    cluster.put("t", "id", 2, 5)
    cluster.put("t2", "id2", 0, 0)
    at = plans.latest(at, limited=True)
    assert offsets(at) == {("t", 0): 100, ("t", 1): 10, ("t", 2): 5, ("t2", 0): 0}
    assert at.ids == {"t": "id", "t2": "id2"}


def test_it_waits_for_enough_but_not_for_ever(cluster: MemoryCluster) -> None:
    """Counted from the last micro-batch: after a long silence the first record need not wait."""
    times = Times()
    plans = planner(cluster, times, minOffsetsPerTrigger="200", maxTriggerDelay="10s")
    at = plans.latest(plans.initial(), limited=True)
    assert offsets(at) == {("t", 0): 100, ("t", 1): 10}
    cluster.put("t", "id", 0, 120)
    assert plans.latest(at, limited=True) is at
    times.sleep(9)
    assert plans.latest(at, limited=True) is at
    times.sleep(1)
    assert offsets(at := plans.latest(at, limited=True)) == {("t", 0): 120, ("t", 1): 10}
    cluster.put("t", "id", 0, 320)
    assert offsets(plans.latest(at, limited=True)) == {("t", 0): 320, ("t", 1): 10}


def test_a_topic_made_anew_stops_it(cluster: MemoryCluster) -> None:
    plans = planner(cluster)
    at = plans.latest(plans.initial(), limited=False)
    cluster.put("t", "another id", 0, 1000)
    cluster.put("t", "another id", 0, 1000)
    with pytest.raises(OttlaError, match=r"created anew .*new checkpoint folder") as caught:
        plans.latest(at, limited=False)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_ID


def test_a_truncated_log_stops_it_even_where_it_is_longer_by_now(cluster: MemoryCluster) -> None:
    """Its offsets do not show it: the leader epoch does (KIP-320)."""
    plans = planner(cluster)
    at = plans.latest(plans.initial(), limited=False)
    cluster.put("t", "id", 0, 80)  # Epoch 0 ends at 80 now,
    cluster.put("t", "id", 0, 400, epoch=1)  # and another leader has written on.
    with pytest.raises(OttlaError, match="offsets 80 to 100 are other records now") as caught:
        plans.latest(at, limited=False)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_clean_change_of_the_leader_does_not_stop_it(cluster: MemoryCluster) -> None:
    plans = planner(cluster)
    at = plans.latest(plans.initial(), limited=False)
    cluster.put("t", "id", 0, 150, epoch=1)
    after = plans.latest(at, limited=False)
    assert after.places[Key("t", 0)] == LogPosition(150, 1)


def test_a_log_that_ends_earlier_stops_it(cluster: MemoryCluster) -> None:
    plans = planner(cluster)
    at = plans.latest(plans.initial(), limited=False)
    cluster.put("t", "id", 0, 50)
    with pytest.raises(OttlaError, match="epoch only up to 50"):
        plans.latest(at, limited=False)


def test_a_topic_that_is_gone_is_a_loss(cluster: MemoryCluster) -> None:
    cluster.put("u", "id of u", 0, 5)
    options = {"subscribe": "", "subscribePattern": "t|u"}
    strict = planner(cluster, **options)
    at = strict.latest(strict.initial(), limited=False)
    del cluster.topics["u"]
    with pytest.raises(OttlaError, match="topic u, which the stream has read"):
        strict.latest(at, limited=False)
    accepting = planner(cluster, failOnDataLoss="false", **options)
    assert accepting.latest(at, limited=False).ids == {"t": "id"}


def test_one_line_says_that_it_waits_and_one_that_it_goes_on(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """However often Spark asks meanwhile."""
    times = Times()
    plans = planner(cluster, times)
    at = plans.initial()
    for _ in range(2):
        cluster.is_reachable = False
        for _ in range(30):
            assert plans.latest(at, limited=False) is at
            times.sleep(1.0)
        cluster.is_reachable = True
        plans.latest(at, limited=False)
        plans.latest(at, limited=False)
    waits = "waiting for brokers: no broker"
    goes_on = "going on: the brokers answer again after 30 s"
    assert [one.getMessage() for one in caplog.records] == [waits, goes_on] * 2


def test_it_waits_while_no_broker_can_be_reached(cluster: MemoryCluster) -> None:
    """With a target it fails: the query would end as if it had reached it."""
    plans = planner(cluster)
    at = plans.initial()
    cluster.is_reachable = False
    assert plans.latest(at, limited=False) is at
    cluster.is_reachable = True
    plans.fix_target()
    cluster.is_reachable = False
    with pytest.raises(ConnectionFailed):
        plans.latest(at, limited=False)


def test_only_assigned_partitions_are_read(cluster: MemoryCluster) -> None:
    """Also where others are added; one that is not there is an error."""
    plans = planner(cluster, subscribe="", assign='{"t": [1]}')
    at = plans.initial()
    cluster.put("t", "id", 2, 5)
    assert offsets(plans.latest(at, limited=False)) == {("t", 1): 10}
    with pytest.raises(OttlaError, match="topic t has no partition 7"):
        planner(cluster, subscribe="", assign='{"t": [1, 7]}').initial()


def test_a_time_without_a_record_is_an_error_or_the_end(cluster: MemoryCluster) -> None:
    """As `startingOffsetsByTimestampStrategy` says."""
    late = {"startingOffsetsByTimestamp": '{"t": {"1": 5}}'}
    with pytest.raises(OttlaError, match="t-1 has no record at or after @5"):
        planner(cluster, **late).initial()
    at = planner(cluster, **late, startingOffsetsByTimestampStrategy="latest").initial()
    assert offsets(at) == {("t", 0): 0, ("t", 1): 10}


def test_a_micro_batch_of_two_topics_of_one_name_is_refused(cluster: MemoryCluster) -> None:
    """Whatever gave its end: nothing of the new topic is read as if it were the old one."""
    plans = planner(cluster)
    start = plans.latest(plans.initial(), limited=False)
    for _ in range(2):  # The first one makes it anew.
        cluster.put("t", "another id", 0, 1000)
    end = planner(cluster).latest(StreamOffset(), limited=False)
    with pytest.raises(OttlaError, match="created anew since the stream read it"):
        plans.ranges(start, end)


def test_what_waits_for_brokers_goes_on_when_they_are_back(
    cluster: MemoryCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Other errors pass."""
    times = Times()
    cluster.is_reachable = False

    def sleep(seconds: float) -> None:
        times.sleep(seconds)
        cluster.is_reachable = times.now_s > 3

    plans = StreamPlanner(
        parse_options({"subscribe": "t"}), {}, lambda _: cluster, lambda: times.now_s, sleep
    )
    assert offsets(plans.when_reachable(plans.initial)) == {("t", 0): 0, ("t", 1): 0}
    assert [one.getMessage()[:11] for one in caplog.records] == ["waiting for", "going on: t"]
    cluster.put("t", "id", 0, 50)
    with pytest.raises(OttlaError, match="not in its log"):
        plans.when_reachable(planner(cluster, startingOffsets='{"t": {"0": 70}}').initial)
