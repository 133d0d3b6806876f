"""What can be undone: deleted topics in the trash, and the changes of settings and offsets."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from ottla.metadata.image import NO_LEADER, TopicImage
from ottla.metadata.nodes import (
    broken,
    decode_configs,
    decode_partition,
    decode_topic,
    dump,
    encode_configs,
    encode_partition,
    encode_topic,
    load,
    topic_node,
)

# Larger nodes do not fit into ZooKeeper.
NODE_BYTES_MAX = 900_000


@dataclass(frozen=True, slots=True)
class Author:
    """The client that made a change, and when."""

    principal: str = ""
    client_id: str = ""
    host: str = ""
    at_ms: int = -1


UNKNOWN_AUTHOR = Author()


def encode_author(author: Author) -> bytes:
    """The data of the mark of a topic that is being deleted."""
    return dump(asdict(author))


def decode_author(path: str, data: bytes) -> Author:
    """Decode the mark of a deleted topic; Kafka's tools leave it empty. Raises OttlaError."""
    if not data:
        return Author()
    try:
        return Author(**load(path, data))
    except TypeError as error:
        raise broken(path, error) from error


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """A deleted topic, as it was. `size_bytes` are those of the largest replica of each partition.

    At `until_ms` its records are removed.
    """

    topic: TopicImage
    author: Author
    until_ms: int
    size_bytes: int

    def restored(self) -> TopicImage:
        """Return the topic to create again: the controller then elects leaders among the ISRs."""
        partitions = tuple(
            state._replace(leader=NO_LEADER, leader_broker_epoch=0, version=0)
            for state in self.topic.partitions
        )
        return replace(self.topic, partitions=partitions, version=0)

    def without(self, broker_id: int, lost: Mapping[int, None]) -> "DeletedTopic":
        """Return the topic after a broker has lost its logs of the partitions in `lost`."""
        partitions = tuple(
            state._replace(
                isr=tuple(each for each in state.isr if each != broker_id),
                elr=tuple(each for each in state.elr if each != broker_id),
                last_known_elr=tuple(each for each in state.last_known_elr if each != broker_id),
            )
            if index in lost
            else state
            for index, state in enumerate(self.topic.partitions)
        )
        return replace(self, topic=replace(self.topic, partitions=partitions))


def encode_deleted_topic(deleted: DeletedTopic) -> bytes:
    """The data of the node of a deleted topic."""
    topic = deleted.topic
    return dump(
        {
            "version": 1,
            "name": topic.name,
            "topic": json.loads(encode_topic(topic_node(topic))),
            "settings": json.loads(encode_configs(topic.configs)),
            "partitions": [json.loads(encode_partition(one, 0)) for one in topic.partitions],
            "author": asdict(deleted.author),
            "until_ms": deleted.until_ms,
            "size_bytes": deleted.size_bytes,
        }
    )


def decode_deleted_topic(path: str, data: bytes) -> DeletedTopic:
    """Decode the node of a deleted topic. Raises OttlaError if it is invalid."""
    held = load(path, data)
    try:
        node = decode_topic(path, dump(held["topic"]))
        partitions = tuple(
            decode_partition(path, dump(state), node.replicas[index], 0)._replace(
                adding=node.adding.get(index, ()), removing=node.removing.get(index, ())
            )
            for index, state in enumerate(held["partitions"])
        )
        configs = decode_configs(path, dump(held["settings"]))
        topic = TopicImage(str(held["name"]), node.id, partitions, configs, 0)
        author = Author(**held["author"])
        return DeletedTopic(topic, author, int(held["until_ms"]), int(held["size_bytes"]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise broken(path, error) from error


# A name, such as that of a setting, and its values before and after a change; None: not set.
Values = Mapping[str, tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class StoredChange:
    """A change that a client made, with the values before and after it.

    `kind` is `topic`, `broker`, `group` or `client_metrics` (settings), `quota` or `offsets`.
    """

    kind: str
    name: str
    values: Values
    author: Author = UNKNOWN_AUTHOR


def encode_change(change: StoredChange) -> bytes:
    """The data of the node of a change."""
    return dump({"version": 1, **asdict(change)})


def decode_change(path: str, data: bytes) -> StoredChange:
    """Decode the node of a change. Raises OttlaError if it is invalid."""
    held = load(path, data)
    try:
        values = {name: (before, after) for name, (before, after) in held["values"].items()}
        return StoredChange(held["kind"], held["name"], values, Author(**held["author"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise broken(path, error) from error
