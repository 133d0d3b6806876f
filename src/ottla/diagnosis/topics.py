"""Which brokers with replicas of a topic are down. Pure."""

from collections.abc import Collection, Iterable

from ottla.client.connection.view import TopicView


def brokers_down(views: Iterable[TopicView], live: Collection[int]) -> tuple[int, ...]:
    """Brokers with replicas of these topics that are not among `live`, by id."""
    replicas = {broker for view in views for entry in view.partitions for broker in entry.replicas}
    return tuple(sorted(replicas.difference(live)))


def fewest_alive(view: TopicView, live: Collection[int]) -> int:
    """How many replicas are alive of the partition that has the fewest alive."""
    return min(sum(broker in live for broker in entry.replicas) for entry in view.partitions)
