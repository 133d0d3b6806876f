"""Builds the parts of a broker, from the bottom up, and lists its handlers."""

import inspect
from typing import TYPE_CHECKING, Any

from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.legacy import bound
from ottla.wire.api import ApiKey

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

# One module per API under `handlers/`; an API is advertised because it stands here, unless it is
# between brokers (`wire.api.BROKER_APIS`).
LEGACY_MODULES = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "offset_commit",
    "offset_fetch",
    "find_coordinator",
    "join_group",
    "heartbeat",
    "leave_group",
    "sync_group",
    "describe_groups",
    "list_groups",
    "sasl_handshake",
    "api_versions",
    "create_topics",
    "delete_topics",
    "delete_records",
    "init_producer_id",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "write_txn_markers",
    "txn_offset_commit",
    "describe_transactions",
    "list_transactions",
    "offset_for_leader_epoch",
    "describe_configs",
    "alter_configs",
    "alter_replica_log_dirs",
    "describe_log_dirs",
    "create_partitions",
    "update_metadata",
    "controlled_shutdown",
    "elect_leaders",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "sasl_authenticate",
    "delete_groups",
    "incremental_alter_configs",
    "offset_delete",
    "describe_client_quotas",
    "alter_client_quotas",
    "describe_user_scram_credentials",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "update_features",
    "describe_cluster",
    "describe_producers",
    "unregister_broker",
    "consumer_group_heartbeat",
    "consumer_group_describe",
    "share_group_heartbeat",
    "share_group_describe",
    "share_fetch",
    "share_acknowledge",
    "describe_share_group_offsets",
    "alter_share_group_offsets",
    "delete_share_group_offsets",
    "initialize_share_group_state",
    "read_share_group_state",
    "write_share_group_state",
    "delete_share_group_state",
    "read_share_group_state_summary",
    "list_config_resources",
    "describe_topic_partitions",
    "broker_handshake",
    "describe_decisions",
    "compact_log",
    "describe_rebalances",
    "describe_cleaner",
    "offset_ledger",
    "retention_standing",
    "leader_and_isr",
    "stop_replica",
    "log_ends",
)


def handlers(broker: "Broker") -> list[Handler]:
    """One object for each API that this broker serves."""
    objects: list[Handler] = []
    return objects + [_legacy(broker, name) for name in LEGACY_MODULES]


def _legacy(broker: "Broker | None", name: str) -> Handler:
    legacy, function, error = bound(name)

    class Legacy(Handler):
        api = legacy.api_key
        versions = Versions(legacy.min_version, legacy.max_version)
        on_error = staticmethod(error)  # type: ignore[assignment]

        def handle(self, request: Any, body: Any) -> Any:
            return function(broker, request, body)

    if inspect.iscoroutinefunction(function):

        async def handle(_self: Handler, request: Any, body: Any) -> Any:
            return await function(broker, request, body)

        Legacy.handle = handle  # type: ignore[method-assign, assignment]
    return Legacy()


def served() -> dict[ApiKey, Versions]:
    """Which versions of which APIs a broker serves."""
    found = {
        kind.api: kind.versions for kind in Handler.__subclasses__() if kind.__name__ != "Legacy"
    }
    for name in LEGACY_MODULES:
        legacy, _, _ = bound(name)
        found[legacy.api_key] = Versions(legacy.min_version, legacy.max_version)
    return found
