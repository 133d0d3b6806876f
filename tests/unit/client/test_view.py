"""What a client knows of its cluster, answer by answer."""

from ottla.base.errors import ErrorCode
from ottla.client.connection.view import NO_LEADER, Address, ClusterView, merged
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def answer(topic: str, leader: int, epoch: int, error: int = 0) -> MetadataResponse:
    """One topic of one partition, led by `leader` since `epoch`."""
    partition = MetadataResponsePartition(
        partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=[leader]
    )
    return MetadataResponse(
        cluster_id="c",
        controller_id=1,
        brokers=[MetadataResponseBroker(node_id=1, host="h", port=9)],
        topics=[
            MetadataResponseTopic(
                name=topic, error_code=error, partitions=[] if error else [partition]
            )
        ],
    )


def test_answers_about_some_topics_leave_the_others() -> None:
    """Brokers are always all of them (P5)."""
    view = merged(ClusterView(), answer("a", 1, 0), ["a"])
    view = merged(view, answer("b", 2, 0), ["b"])
    assert (view.leader("a", 0), view.leader("b", 0)) == (1, 2)
    assert view.brokers[1].address == Address("h", 9)
    assert (view.leader("a", 1), view.leader("c", 0)) == (NO_LEADER, NO_LEADER)


def test_an_older_term_does_not_replace_a_newer() -> None:
    """KIP-320: a broker that lags behind still names the leader of before."""
    view = merged(ClusterView(), answer("a", 1, 5), ["a"])
    view = merged(view, answer("a", 2, 4), ["a"])
    assert (view.leader("a", 0), view.leader_epoch("a", 0)) == (1, 5)
    view = merged(view, answer("a", 3, 6), ["a"])
    assert (view.leader("a", 0), view.leader_epoch("a", 0)) == (3, 6)


def test_a_topic_that_is_gone_is_forgotten_with_its_error() -> None:
    """And known again once it is back."""
    view = merged(ClusterView(), answer("a", 1, 0), ["a"])
    view = merged(view, answer("a", 0, 0, error=3), ["a"])
    assert view.leader("a", 0) == NO_LEADER
    assert view.errors == {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    view = merged(view, answer("a", 1, 0), ["a"])
    assert view.errors == {}
