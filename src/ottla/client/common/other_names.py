"""Names in other Kafka clients; errors about them give the name used here."""

from typing import TYPE_CHECKING, Final, NoReturn

# Options of other clients that have a different name here.
OTHER_OPTIONS: Final = {
    "assignors": "partition_assignment_strategy",
    "batch_bytes": "batch_size",
    "idempotence": "enable_idempotence",
    "read_committed": "isolation_level",
    "security_protocol": "config",
    "ssl_context": "config",
    "ssl_cafile": "config",
    "sasl_mechanism": "config",
    "sasl_plain_username": "config",
    "sasl_plain_password": "config",
    "auto_commit_enable": "enable_auto_commit",
    "compression_codec": "compression_type",
    "fetch_wait_max_ms": "fetch_max_wait_ms",
    "max_block_ms": "delivery_timeout_ms",
    "max_in_flight": "max_in_flight_requests_per_connection",
    "message_timeout_ms": "delivery_timeout_ms",
    "partitioner_class": "partitioner",
    "queue_buffering_max_ms": "linger_ms",
    "request_required_acks": "acks",
    "socket_timeout_ms": "request_timeout_ms",
}
# Options of other clients that do not exist here, with the replacement.
NO_OPTIONS: Final = {
    "consumer_timeout_ms": "poll(timeout=…) returns nothing where nothing came in time",
    "group_protocol": "groups of this client are of the classic protocol",
    "retries": "records are sent again until delivery_timeout_ms",
    "metadata_max_age_ms": "metadata is asked for again as soon as a leader refuses",
    "callback": "give Producer(…, on_delivery=…), or call add_callback(…) of what send returns",
    "dr_cb": "give Producer(…, on_delivery=…)",
}
_PRODUCER: Final = {
    "produce": "send(topic, value, key)",
    "poll": "on_delivery=… of Producer, or result() of what send returns",
    "start": 'async with Producer("host:9092") as producer',
    "stop": "close()",
    "list_topics": 'Admin("host:9092").topics.list()',
}
_CONSUMER: Final = {
    "start": 'async with Consumer("host:9092", "topic") as consumer',
    "stop": "close()",
    "getone": "anext(consumer), or: async for record in consumer",
    "getmany": "poll(timeout=…)",
    "consume": "poll(timeout=…, max_records=…)",
    "partitions_for_topic": "partitions_for(topic)",
    "topics": 'Admin("host:9092").topics.list()',
    "list_topics": 'Admin("host:9092").topics.list()',
    "unsubscribe": "close(), and another Consumer",
    "get_watermark_offsets": "beginning_offsets(partitions) and end_offsets(partitions)",
    "highwater": "high_watermark(partition)",
}
_ADMIN: Final = {
    "list_topics": "topics.list()",
    "create_topic": "topics.create(name, partitions=…)",
    "create_topics": "topics.create(name, partitions=…)",
    "create_partitions": "topics.create_partitions(name, total)",
    "delete_topics": "topics.delete(names)",
    "describe_topics": "topics.describe(names)",
    "list_consumer_groups": "groups.list()",
    "list_groups": "groups.list()",
    "describe_consumer_groups": "groups.describe(group_id)",
    "delete_consumer_groups": "groups.delete(group_ids)",
    "list_consumer_group_offsets": "groups.offsets(group_id)",
    "alter_consumer_group_offsets": "groups.set_offsets(group_id, offsets)",
    "describe_configs": 'configs.describe("topic", name)',
    "alter_configs": 'configs.alter("topic", name, changes)',
    "incremental_alter_configs": 'configs.alter("topic", name, changes)',
    "describe_cluster": "cluster.describe()",
    "create_acls": "acls.create(acls)",
    "describe_acls": "acls.find(filter)",
    "delete_acls": "acls.delete(filters)",
    "delete_records": "logs.delete_records(offsets)",
}


class OtherNames:
    """A client whose missing attributes raise an AttributeError that names the right call."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            names = {"Producer": _PRODUCER, "Consumer": _CONSUMER, "Admin": _ADMIN}.get(kind, {})
            instead = f"; write {names[name]}" if name in names else ""
            raise AttributeError(f"{kind} has no {name!r}{instead}", name=name, obj=self)
