"""Settings of earlier versions of Kafka. Accepted with a note, as Kafka 4 does; never described."""

_ZOOKEEPER = "Kafka's use of ZooKeeper ended with 4.0."
_FORMAT = "There is one record format, batch v2, since Kafka 4.0."

FORMER_SETTINGS: dict[str, str] = {
    "advertised.host.name": "Use advertised.listeners.",
    "advertised.port": "Use advertised.listeners.",
    "broker.id.generation.enable": "Set node.id.",
    "control.plane.listener.name": "There is no separate control listener.",
    "controlled.shutdown.max.retries": "A stopping broker asks once.",
    "controlled.shutdown.retry.backoff.ms": "A stopping broker asks once.",
    "controller.quota.callback.class": "Quotas are not pluggable.",
    "group.coordinator.new.enable": "There is one group coordinator.",
    "host.name": "Use listeners.",
    "inter.broker.protocol.version": "Brokers agree on versions by themselves.",
    "kafka.metrics.config.dir": "Kafka's metrics reporters are Java classes.",
    "log.message.downconversion.enable": _FORMAT,
    "log.message.format.version": _FORMAT,
    "log.message.timestamp.difference.max.ms": (
        "Use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms."
    ),
    "password.encoder.cipher.algorithm": _ZOOKEEPER,
    "password.encoder.iterations": _ZOOKEEPER,
    "password.encoder.key.length": _ZOOKEEPER,
    "password.encoder.keyfactory.algorithm": _ZOOKEEPER,
    "password.encoder.old.secret": _ZOOKEEPER,
    "password.encoder.secret": _ZOOKEEPER,
    "port": "Use listeners.",
    "quota.consumer.default": "Set quotas with kafka-configs.",
    "quota.producer.default": "Set quotas with kafka-configs.",
    "replica.high.watermark.checkpoint.interval": "Use the name that ends in .ms.",
    "reserved.broker.max.id": "Set node.id.",
    "zookeeper.clientCnxnSocket": "zookeeper.ssl.client.enable is enough.",
    "zookeeper.connect": _ZOOKEEPER,
    "zookeeper.connection.timeout.ms": _ZOOKEEPER,
    "zookeeper.max.in.flight.requests": _ZOOKEEPER,
    "zookeeper.metadata.migration.enable": _ZOOKEEPER,
    "zookeeper.session.timeout.ms": _ZOOKEEPER,
    "zookeeper.ssl.crl.enable": "Certificates are not looked up in lists of revoked ones.",
    "zookeeper.ssl.ocsp.enable": "Certificates are not looked up in lists of revoked ones.",
    "zookeeper.ssl.protocol": "Use zookeeper.ssl.enabled.protocols.",
    "zookeeper.sync.time.ms": _ZOOKEEPER,
}
