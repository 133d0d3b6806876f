"""Encodes and decodes the store's nodes, as JSON in the format that Kafka used in ZooKeeper."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicId
from ottla.metadata.features import INITIAL
from ottla.metadata.image import (
    PROTOCOL_NAMES,
    PROTOCOL_NUMBERS,
    BrokerImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)


def dump(held: dict[str, Any]) -> bytes:
    """Encode the data of a node."""
    return json.dumps(held, separators=(",", ":")).encode()


def load(path: str, data: bytes) -> dict[str, Any]:
    """Decode the object in a node's data. Raises OttlaError if it is not a JSON object."""
    try:
        held = json.loads(data)
    except ValueError as error:
        raise broken(path, error) from error
    if not isinstance(held, dict):
        raise broken(path, TypeError("it is no object"))
    return held


def broken(path: str, error: Exception) -> OttlaError:
    """The error for an invalid node, with the cause."""
    return OttlaError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"the store's node {path} does not hold what it should ({error}); restore it from a "
        "copy, or delete it if its content is not needed",
    )


def topic_id_text(topic_id: UUID) -> str:
    """Return a topic id as 22 characters, as in partition.metadata and in Kafka's tools."""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def topic_id_value(text: str) -> UUID:
    """Parse the text of `topic_id_text`. Raises ValueError if it is invalid."""
    if len(text) != 22:
        raise ValueError(f"{text!r} is no topic id: it must have 22 characters")
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def topic_id_of(random_bytes: bytes) -> UUID:
    """Return a version 4 UUID from 16 random bytes. It is never one of the reserved ids 0 and 1."""
    return UUID(bytes=random_bytes, version=4)


# A shorter secret could be guessed.
SECRET_BYTES_MIN = 16


@dataclass(frozen=True, slots=True)
class TopicNode:
    """The node of a topic: its id, and the replicas of each partition by number."""

    id: TopicId
    replicas: tuple[tuple[BrokerId, ...], ...]
    # Reassignments in progress, by partition (KIP-455).
    adding: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[BrokerId, ...]] = field(default_factory=dict)


def topic_node(topic: TopicImage) -> TopicNode:
    """Return the content of the topic's node."""
    partitions = list(enumerate(topic.partitions))
    return TopicNode(
        topic.id,
        tuple(partition.replicas for _, partition in partitions),
        {index: partition.adding for index, partition in partitions if partition.adding},
        {index: partition.removing for index, partition in partitions if partition.removing},
    )


def encode_topic(node: TopicNode) -> bytes:
    """The data of a topic's node."""
    return dump(
        {
            "version": 3,
            "topic_id": topic_id_text(node.id),
            "partitions": _by_partition(dict(enumerate(node.replicas))),
            "adding_replicas": _by_partition(node.adding),
            "removing_replicas": _by_partition(node.removing),
        }
    )


def decode_topic(path: str, data: bytes) -> TopicNode:
    """Decode a topic's node. Raises OttlaError if it is invalid."""
    held = load(path, data)
    try:
        partitions = {int(index): replicas for index, replicas in held["partitions"].items()}
        replicas = tuple(_brokers(partitions[index]) for index in range(len(partitions)))
        return TopicNode(
            TopicId(topic_id_value(held["topic_id"])),
            replicas,
            _moves(held.get("adding_replicas", {})),
            _moves(held.get("removing_replicas", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise broken(path, error) from error


def encode_partition(partition: PartitionImage, controller_epoch: int) -> bytes:
    """The data of a partition's state."""
    unclean = {} if partition.unclean_epoch < 0 else {"unclean_epoch": partition.unclean_epoch}
    return dump(
        {
            "version": 1,
            "controller_epoch": controller_epoch,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "isr": list(partition.isr),
            "elr": list(partition.elr),
            "last_known_elr": list(partition.last_known_elr),
            "nonce": partition.nonce,
            "leader_broker_epoch": partition.leader_broker_epoch,
            **unclean,
        }
    )


def decode_partition(
    path: str, data: bytes, replicas: tuple[BrokerId, ...], version: int
) -> PartitionImage:
    """Decode a partition's state. Raises OttlaError if it is invalid."""
    held = load(path, data)
    try:
        return PartitionImage(
            leader=BrokerId(int(held["leader"])),
            leader_epoch=int(held["leader_epoch"]),
            replicas=replicas,
            isr=_brokers(held["isr"]),
            version=version,
            elr=_brokers(held.get("elr", ())),
            last_known_elr=_brokers(held.get("last_known_elr", ())),
            nonce=int(held.get("nonce", 0)),
            leader_broker_epoch=int(held.get("leader_broker_epoch", 0)),
            unclean_epoch=int(held.get("unclean_epoch", -1)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise broken(path, error) from error


def encode_configs(configs: Mapping[str, str]) -> bytes:
    """The data of a settings node."""
    return dump({"version": 1, "config": dict(configs)})


def decode_configs(path: str, data: bytes) -> dict[str, str]:
    """Decode a settings node. Raises OttlaError if it is invalid."""
    held = load(path, data)
    configs = held.get("config")
    if not isinstance(configs, dict):
        raise broken(path, TypeError("config is no object"))
    return {str(name): str(value) for name, value in configs.items()}


def encode_features(levels: Mapping[str, int]) -> bytes:
    """The data of the node of the cluster's features."""
    return dump({"version": 1, "features": dict(levels)})


def decode_features(path: str, data: bytes) -> dict[str, int]:
    """Decode the levels of all features. Features that the node lacks have their initial levels."""
    if not data:
        return dict(INITIAL)
    try:
        held = {str(name): int(level) for name, level in load(path, data)["features"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise broken(path, error) from error
    return {name: held.get(name, level) for name, level in INITIAL.items()}


def features_epoch(version: int | None) -> int:
    """The number of the latest change of features: 1 without a node, else node version + 2."""
    return 1 if version is None else version + 2


def encode_broker(broker: BrokerImage, now_ms: int, boot_id: str = "") -> bytes:
    """Return a broker's node: `now_ms` is the registration time, `boot_id` the machine's boot."""
    endpoints = [f"{name}://{e.host}:{e.port}" for name, e in broker.endpoints.items()]
    protocols = {name: endpoint.protocol for name, endpoint in broker.endpoints.items()}
    # `host` and `port` are for programs that know only plaintext listeners.
    clear = (each for each in broker.endpoints.values() if each.protocol == "PLAINTEXT")
    first = next(clear, None)
    return dump(
        {
            "version": 5,
            "host": None if first is None else first.host,
            "port": -1 if first is None else first.port,
            "endpoints": endpoints,
            "listener_security_protocol_map": protocols,
            "rack": broker.rack,
            "timestamp": str(now_ms),
            "boot_id": boot_id,
        }
    )


def decode_broker(path: str, data: bytes, epoch: int = 0) -> BrokerImage:
    """Decode a broker's node. Raises OttlaError if it is invalid."""
    held = load(path, data)
    try:
        endpoints: dict[str, Endpoint] = {}
        protocols = held.get("listener_security_protocol_map", {})
        for entry in held["endpoints"]:
            name, _, rest = entry.partition("://")
            host, _, port = rest.rpartition(":")
            protocol = PROTOCOL_NAMES[PROTOCOL_NUMBERS[protocols.get(name, "PLAINTEXT")]]
            endpoints[name] = Endpoint(host, int(port), protocol)
        broker_id = BrokerId(int(path.rpartition("/")[2]))
        return BrokerImage(broker_id, endpoints, held.get("rack"), epoch)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise broken(path, error) from error


def encode_cluster_id(cluster_id: str) -> bytes:
    """The data of the node that names the cluster."""
    return dump({"version": "1", "id": cluster_id})


def decode_cluster_id(path: str, data: bytes) -> str:
    """Decode the cluster id's node. Raises OttlaError if it is invalid."""
    held = load(path, data)
    if not isinstance(held.get("id"), str):
        raise broken(path, TypeError("id is no text"))
    return str(held["id"])


def _by_partition(replicas: Mapping[int, Sequence[BrokerId]]) -> dict[str, list[BrokerId]]:
    return {str(index): list(brokers) for index, brokers in replicas.items()}


def _moves(held: Mapping[str, Sequence[Any]]) -> dict[int, tuple[BrokerId, ...]]:
    return {int(index): _brokers(brokers) for index, brokers in held.items()}


def encode_cluster_secret(secret: bytes) -> bytes:
    """The data of the node with the secret by which brokers recognise each other."""
    return dump({"version": 1, "secret": secret.hex()})


def decode_cluster_secret(path: str, data: bytes) -> bytes:
    """Decode the cluster secret's node. Raises OttlaError if it is invalid."""
    held = load(path, data)
    try:
        secret = bytes.fromhex(held["secret"])
    except (KeyError, TypeError, ValueError):
        # The cause is left out, because its text may contain the secret.
        raise broken(path, ValueError("secret is no hexadecimal text")) from None
    if len(secret) < SECRET_BYTES_MIN:
        raise broken(path, ValueError(f"secret has fewer than {SECRET_BYTES_MIN} bytes"))
    return secret


def _brokers(ids: Sequence[Any]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(int(broker)) for broker in ids)
