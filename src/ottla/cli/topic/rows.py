"""A topic as a row, of a table or of JSON."""

from typing import Any

from ottla.client.connection.view import TopicView


def topic_row(view: TopicView) -> dict[str, Any]:
    """Name, id, and how many partitions and replicas."""
    return {
        "name": view.name,
        "topic_id": str(view.topic_id),
        "partition_count": len(view.partitions),
        "replication_factor": max((len(entry.replicas) for entry in view.partitions), default=0),
        "internal": view.is_internal,
    }
