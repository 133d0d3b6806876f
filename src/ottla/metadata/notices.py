"""The data of short-lived nodes: the controller, change notices, requests to the controller."""

from collections.abc import Sequence
from typing import Any

from ottla.base.ids import BrokerId, TopicPartition
from ottla.metadata.nodes import broken, dump, load


def encode_controller(broker_id: BrokerId, now_ms: int) -> bytes:
    """The data of `/controller`; `now_ms` is when the broker was elected."""
    return dump({"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)})


def decode_controller(data: bytes) -> BrokerId:
    """The controller's id. Raises OttlaError if the node is invalid."""
    held = load("/controller", data)
    try:
        return BrokerId(int(held["brokerid"]))
    except (KeyError, TypeError, ValueError) as error:
        raise broken("/controller", error) from error


def encode_isr_changes(partitions: Sequence[TopicPartition]) -> bytes:
    """The data of a node under `/isr_change_notification`."""
    named = [{"topic": name.topic, "partition": name.partition} for name in partitions]
    return dump({"version": 1, "partitions": named})


def decode_partitions(path: str, data: bytes) -> list[TopicPartition]:
    """Decode the partitions of an ISR change, or of a request for preferred leaders."""
    held = load(path, data)
    try:
        return [_partition(entry) for entry in held["partitions"]]
    except (KeyError, TypeError, ValueError) as error:
        raise broken(path, error) from error


def encode_log_dir_event(broker_id: BrokerId) -> bytes:
    """The data of a node under `/log_dir_event_notification`."""
    return dump({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(path: str, data: bytes) -> BrokerId:
    """Decode the id of the broker whose replicas went offline or came back."""
    held = load(path, data)
    try:
        return BrokerId(int(held["broker"]))
    except (KeyError, TypeError, ValueError) as error:
        raise broken(path, error) from error


def decode_reassignments(path: str, data: bytes) -> dict[TopicPartition, list[int]]:
    """Decode the requested replicas by partition, from `/admin/reassign_partitions`."""
    held = load(path, data)
    try:
        return {
            _partition(entry): [int(broker) for broker in entry["replicas"]]
            for entry in held["partitions"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise broken(path, error) from error


def encode_config_change(entity_path: str, now_ms: int) -> bytes:
    """The data of a node under `/config/changes`: the changed entity (`topics/flights`)."""
    return dump({"version": 2, "entity_path": entity_path, "timestamp": str(now_ms)})


def decode_config_change(path: str, data: bytes) -> tuple[str, int]:
    """Decode the path of the changed entity, and the time of the change."""
    held = load(path, data)
    try:
        return str(held["entity_path"]), int(held.get("timestamp", 0))
    except (KeyError, TypeError, ValueError) as error:
        raise broken(path, error) from error


def _partition(entry: dict[str, Any]) -> TopicPartition:
    return TopicPartition(str(entry["topic"]), int(entry["partition"]))
