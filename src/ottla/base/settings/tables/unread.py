"""Kafka's settings of parts that Ottla does not have, or has no use for: accepted, and so marked.

A setting whose part comes into being is taken out of here; a test holds the list to the code.
"""

# Everything whose name begins so belongs to one such part.
UNREAD_PREFIXES = ("metrics.",)
UNREAD_NAMES = frozenset(
    {
        "add.partitions.to.txn.retry.backoff.ms",
        "background.threads",
        "broker.heartbeat.interval.ms",
        "delete.records.purgatory.purge.interval.requests",
        "early.start.listeners",
        "fetch.purgatory.purge.interval.requests",
        "group.consumer.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.coordinator.append.linger.ms",
        "group.coordinator.background.threads",
        "group.coordinator.cached.buffer.max.bytes",
        "group.coordinator.rebalance.protocols",
        "group.coordinator.threads",
        "log.cleaner.io.buffer.size",
        "log.dir.failure.timeout.ms",
        "log.initial.task.delay.ms",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "offsets.topic.compression.codec",
        "producer.purgatory.purge.interval.requests",
        "queued.max.requests",
        "replica.socket.receive.buffer.bytes",
        "request.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "transaction.two.phase.commit.enable",
    }
)
