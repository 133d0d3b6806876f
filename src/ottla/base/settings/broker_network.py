"""Broker settings: listeners, connections, requests in flight."""

from ottla.base.settings.notation import (
    CLUSTER_WIDE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    PER_BROKER,
    READ_ONLY,
    STRING,
)
from ottla.base.settings.setting import Setting
from ottla.base.settings.validators import at_least, one_of

# Two lines a row keep the table readable.
# fmt: off
NETWORK: tuple[Setting, ...] = (
    Setting("listeners", LIST, ("PLAINTEXT://:9092",), None, PER_BROKER,
            "Addresses to listen on, each as NAME://host:port; an empty host means every "
            "interface."),
    Setting("advertised.listeners", LIST, None, None, READ_ONLY,
            "Addresses clients are told to use, when they differ from those they reached.",
            differs="Kafka: the listeners, or the host name. Unset, every client is told the "
            "address it reached."),
    Setting("listener.security.protocol.map", STRING,
            "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", None,
            PER_BROKER,
            "The security protocol of each listener name."),
    Setting("inter.broker.listener.name", STRING, None, None, READ_ONLY,
            "The listener brokers use among themselves."),
    Setting("security.inter.broker.protocol", STRING, "PLAINTEXT",
            one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"), READ_ONLY,
            "The security protocol between brokers where inter.broker.listener.name is unset."),
    Setting("early.start.listeners", LIST, None, None, READ_ONLY,
            "Listeners that would open before start-up is complete; here all open together."),
    Setting("socket.listen.backlog.size", INT, 50, at_least(1), READ_ONLY,
            "Connections that may wait to be accepted."),
    Setting("socket.receive.buffer.bytes", INT, 102_400, None, READ_ONLY,
            "Receive buffer of each socket in bytes; -1 leaves it to the system."),
    Setting("socket.send.buffer.bytes", INT, 102_400, None, READ_ONLY,
            "Send buffer of each socket in bytes; -1 leaves it to the system."),
    Setting("socket.request.max.bytes", INT, 104_857_600, at_least(1), READ_ONLY,
            "Largest request accepted, in bytes; a larger one closes its connection."),
    Setting("socket.connection.setup.timeout.ms", LONG, 10_000, None, READ_ONLY,
            "How long a connection to another broker may take to open at first, in "
            "milliseconds."),
    Setting("socket.connection.setup.timeout.max.ms", LONG, 30_000, None, READ_ONLY,
            "How long a connection to another broker may take after repeated failures, in "
            "milliseconds."),
    Setting("connections.max.idle.ms", LONG, 600_000, None, READ_ONLY,
            "A connection without a request for this long is closed, in milliseconds."),
    Setting("max.connections", INT, INT_MAX, at_least(0), CLUSTER_WIDE,
            "Connections allowed at a time on the broker."),
    Setting("max.connections.per.ip", INT, INT_MAX, at_least(0), CLUSTER_WIDE,
            "Connections allowed at a time from one address."),
    Setting("max.connections.per.ip.overrides", STRING, "", None, CLUSTER_WIDE,
            "Addresses with a limit of their own, as address:count,address:count."),
    Setting("max.connection.creation.rate", INT, INT_MAX, at_least(0), CLUSTER_WIDE,
            "New connections allowed a second on the broker."),
    Setting("connection.failed.authentication.delay.ms", INT, 100, at_least(0), READ_ONLY,
            "How long a failed login waits for its answer, in milliseconds."),
    Setting("queued.max.requests", INT, 500, at_least(1), READ_ONLY,
            "Requests that may be unanswered on the broker before it stops reading."),
    Setting("queued.max.request.bytes", LONG, -1, None, READ_ONLY,
            "Bytes of requests that may be unanswered before the broker stops reading; -1 for "
            "no limit."),
    Setting("request.timeout.ms", INT, 30_000, None, READ_ONLY,
            "How long one broker waits for another to answer, in milliseconds."),
    Setting("max.request.partition.size.limit", INT, 2000, at_least(1), READ_ONLY,
            "Most partitions one DescribeTopicPartitions answer holds."),
    Setting("fetch.max.bytes", INT, 57_671_680, at_least(1024), READ_ONLY,
            "Most bytes one fetch answer holds, unless its first batch alone is larger."),
    Setting("max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0), READ_ONLY,
            "Fetch sessions remembered at a time."),
    Setting("num.network.threads", INT, 3, at_least(1), CLUSTER_WIDE,
            "Network threads; one event loop does all of it here."),
    Setting("num.io.threads", INT, 8, at_least(1), CLUSTER_WIDE,
            "Threads for blocking work, such as reads that miss the page cache."),
    Setting("background.threads", INT, 10, at_least(1), CLUSTER_WIDE,
            "Threads for background work; maintenance runs on the event loop here."),
    Setting("fetch.purgatory.purge.interval.requests", INT, 1000, None, READ_ONLY,
            "Waiting fetches between purges; nothing needs purging here."),
    Setting("producer.purgatory.purge.interval.requests", INT, 1000, None, READ_ONLY,
            "Waiting produces between purges; nothing needs purging here."),
    Setting("delete.records.purgatory.purge.interval.requests", INT, 1, None, READ_ONLY,
            "Waiting record deletions between purges; nothing needs purging here."),
)
# fmt: on
