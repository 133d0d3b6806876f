"""A client's view of the metadata: brokers with their addresses, topics, leaders. Only values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.client.common.errors import ClientError, code_of
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

DEFAULT_PORT = 9092


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Iterable[str]) -> tuple[Address, ...]:
    """Return the addresses in the given order. Raises ClientError if one is invalid."""
    if isinstance(bootstrap, Mapping):
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            'a mapping of settings is no address; write "host:9092", and then options as keywords,'
            ' as in acks="all"',
        )
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = tuple(_parse_one(part.strip()) for part in parts if part.strip())
    if not addresses:
        raise ClientError(
            ErrorCode.INVALID_REQUEST, "no bootstrap address given; write it as host:port"
        )
    return addresses


def _parse_one(text: str) -> Address:
    if "@" in text:
        # Without the text, which may contain a password.
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            "an address of a broker has no user and no password; write host:port, and settings of"
            " logins into a file (--config, OTTLA_CONFIG)",
        )
    if "://" in text:
        text = text.split("://", 1)[1]
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if not host or (port and not port.isdecimal()) or int(port or DEFAULT_PORT) > 65535:
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            f"{text!r} is not an address; write host:port, for example localhost:9092",
        )
    return Address(host, int(port or DEFAULT_PORT))


NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition: leader, leader epoch, replicas, ISR."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic and its partitions in the order of their numbers."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A live broker and its address."""

    broker_id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A snapshot of the cluster's metadata. `topics` has only the topics that were requested."""

    cluster_id: str | None = None
    controller_id: int = NO_LEADER
    brokers: dict[int, BrokerDescription] = field(default_factory=dict)
    topics: dict[str, TopicDescription] = field(default_factory=dict)
    errors: dict[str, ErrorCode] = field(default_factory=dict)

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of the leader; NO_LEADER if unknown."""
        view = self.topics.get(topic)
        if view is None or partition >= len(view.partitions):
            return NO_LEADER
        return view.partitions[partition].leader

    def leader_epoch(self, topic: str, partition: int) -> int:
        """Return the leader epoch; -1 if unknown."""
        view = self.topics.get(topic)
        if view is None or partition >= len(view.partitions):
            return -1
        return view.partitions[partition].leader_epoch


def merged(old: ClusterView, answer: MetadataResponse, asked: Iterable[str] | None) -> ClusterView:
    """Return `old` updated by an answer about the topics `asked` (None: about all)."""
    brokers = {
        broker.node_id: BrokerDescription(
            broker.node_id, Address(broker.host, broker.port), broker.rack
        )
        for broker in answer.brokers
    }
    topics = {} if asked is None else dict(old.topics)
    errors = {} if asked is None else dict(old.errors)
    for name in asked or ():
        topics.pop(name, None)
        errors.pop(name, None)
    for topic in answer.topics:
        if topic.name is None:
            continue
        if topic.error_code:
            errors[topic.name] = code_of(topic.error_code)
        else:
            topics[topic.name] = _fenced(_topic(topic), old.topics.get(topic.name))
    return replace(
        old,
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        brokers=brokers,
        topics=topics,
        errors=errors,
    )


def _topic(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = sorted(
        (
            PartitionDescription(
                partition=entry.partition_index,
                leader=entry.leader_id,
                leader_epoch=entry.leader_epoch,
                replicas=tuple(entry.replica_nodes),
                isr=tuple(entry.isr_nodes),
                error=code_of(entry.error_code),
            )
            for entry in topic.partitions
        ),
        key=lambda view: view.partition,
    )
    return TopicDescription(topic.name or "", topic.topic_id, topic.is_internal, tuple(partitions))


def _fenced(new: TopicDescription, old: TopicDescription | None) -> TopicDescription:
    """Keep the newer leader epoch: a lagging broker may report an earlier leader (KIP-320)."""
    if old is None or old.topic_id != new.topic_id:
        return new
    partitions = tuple(
        known
        if index < len(old.partitions)
        and (known := old.partitions[index]).leader_epoch > entry.leader_epoch >= 0
        else entry
        for index, entry in enumerate(new.partitions)
    )
    return replace(new, partitions=partitions)
