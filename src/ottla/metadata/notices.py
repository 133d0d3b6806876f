"""What short-lived nodes of the store hold: who is controller, what changed, what is asked for."""

import json
from collections.abc import Sequence
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition


def encode_controller(broker_id: BrokerId, now_ms: int) -> bytes:
    """The data of `/controller`; `now_ms` is when it took office."""
    return _dump({"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)})


def decode_controller(data: bytes) -> BrokerId:
    """Who is controller. Raises OttlaError where the node is not ours."""
    held = _load("/controller", data)
    try:
        return BrokerId(int(held["brokerid"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _broken("/controller", error) from error


def encode_isr_changes(partitions: Sequence[TopicPartition]) -> bytes:
    """The data of a node under `/isr_change_notification`."""
    named = [{"topic": name.topic, "partition": name.partition} for name in partitions]
    return _dump({"version": 1, "partitions": named})


def decode_partitions(path: str, data: bytes) -> list[TopicPartition]:
    """The partitions that an announcement, or a wish for preferred leaders, names."""
    held = _load(path, data)
    try:
        return [_partition(entry) for entry in held["partitions"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(path, error) from error


def encode_log_dir_event(broker_id: BrokerId) -> bytes:
    """The data of a node under `/log_dir_event_notification`."""
    return _dump({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(path: str, data: bytes) -> BrokerId:
    """The broker whose replicas are in or out of use by now."""
    held = _load(path, data)
    try:
        return BrokerId(int(held["broker"]))
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(path, error) from error


def decode_reassignments(path: str, data: bytes) -> dict[TopicPartition, list[int]]:
    """The replicas wanted, by partition, of `/admin/reassign_partitions`."""
    held = _load(path, data)
    try:
        return {
            _partition(entry): [int(broker) for broker in entry["replicas"]]
            for entry in held["partitions"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(path, error) from error


def encode_config_change(entity_path: str, now_ms: int) -> bytes:
    """The data of a node under `/config/changes`: whose settings changed (`topics/flights`)."""
    return _dump({"version": 2, "entity_path": entity_path, "timestamp": str(now_ms)})


def decode_config_change(path: str, data: bytes) -> tuple[str, int]:
    """The entity's path, and when it changed."""
    held = _load(path, data)
    try:
        return str(held["entity_path"]), int(held.get("timestamp", 0))
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(path, error) from error


def _partition(entry: dict[str, Any]) -> TopicPartition:
    return TopicPartition(str(entry["topic"]), int(entry["partition"]))


def _dump(held: dict[str, Any]) -> bytes:
    return json.dumps(held, separators=(",", ":")).encode()


def _load(path: str, data: bytes) -> dict[str, Any]:
    try:
        held = json.loads(data)
    except ValueError as error:
        raise _broken(path, error) from error
    if not isinstance(held, dict):
        raise _broken(path, TypeError("it is no object"))
    return held


def _broken(path: str, error: Exception) -> OttlaError:
    return OttlaError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"the store's node {path} does not hold what it should ({error}); delete it if nobody "
        "needs what it asks for",
    )
