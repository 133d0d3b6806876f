"""The names of Kafka clients' settings, and checks of given settings. Pure.

A name that no Kafka client has is refused: a typing mistake in `security.protocol` would let a
client connect without TLS. Names that only other clients use are accepted, so that one file serves
all clients. A name that changes which broker is trusted is refused; the error has Kafka's name.
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from ottla.base.errors import ErrorCode
from ottla.base.settings.tables import BROKER_SETTINGS
from ottla.client.common.errors import ClientError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

# The settings of Apache Kafka 4.3's producer, consumer and admin client, except those for TLS and
# logins that brokers have, too.
_OF_KAFKA: Final = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size
    bootstrap.controllers bootstrap.servers buffer.memory check.crcs client.dns.lookup client.id
    client.rack compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level config.providers connections.max.idle.ms default.api.timeout.ms
    delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    interceptor.classes isolation.level key.deserializer key.serializer linger.ms max.block.ms
    max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records max.request.size metadata.max.age.ms metadata.max.idle.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy partitioner.adaptive.partitioning.enable
    partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
    receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
    retries retry.backoff.max.ms retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.header.urlencode security.protocol security.providers send.buffer.bytes
    session.timeout.ms share.acknowledgement.mode share.acquire.mode
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
    value.deserializer value.serializer
"""
_ONLY_OF_BROKERS: Final = re.compile(
    r"sasl\.(enabled|server|plain|mechanism\.|kerberos\.principal|oauthbearer\.allowed).*"
    r"|ssl\.(allow|client|engine|principal).*"
)
# The names in librdkafka that differ.
_OF_LIBRDKAFKA: Final = """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms
    auto.commit.enable batch.num.messages broker.address.family broker.address.ttl
    broker.version.fallback compression.codec compression.level consume.callback.max.messages
    coordinator.query.interval.ms debug delivery.report.only.error enable.auto.offset.store
    enable.gapless.guarantee enable.partition.eof enable.random.seed
    enable.sasl.oauthbearer.unsecure.jwt fetch.error.backoff.ms fetch.message.max.bytes
    fetch.queue.backoff.ms fetch.wait.max.ms group.protocol.type log.connection.close log.queue
    log.thread.name log_level max.in.flight message.copy.max.bytes message.max.bytes
    message.send.max.retries message.timeout.ms metadata.broker.list offset.store.method
    offset.store.path offset.store.sync.interval.ms partitioner plugin.library.paths
    produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes
    queued.min.messages queuing.strategy receive.message.max.bytes reconnect.backoff.jitter.ms
    request.required.acks sasl.kerberos.keytab sasl.kerberos.principal sasl.mechanisms
    sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.config
    sasl.oauthbearer.extensions sasl.oauthbearer.grant.type
    sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method sasl.password
    sasl.username socket.blocking.max.ms socket.keepalive.enable socket.max.fails
    socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
    ssl.curves.list ssl.providers ssl.sigalgs.list statistics.interval.ms
    sticky.partitioning.linger.ms topic.blacklist topic.metadata.propagation.max.ms
    topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
"""
# The part after such a prefix depends on a provider or serializer.
_PREFIXES: Final = ("config.providers.", "schema.registry.", "basic.auth.", "bearer.auth.")
_PEM = "write ssl.truststore.type=PEM and ssl.truststore"
_OWN_PEM = "write ssl.keystore.type=PEM and ssl.keystore"
_REFUSED: Final = {
    "ssl.ca.location": f"{_PEM}.location",
    "ssl.ca.pem": f"{_PEM}.certificates",
    "ssl.ca.certificate.stores": f"{_PEM}.location, the path of a file with the authorities",
    "ssl.certificate.location": f"{_OWN_PEM}.location, one file with the key and the certificate",
    "ssl.certificate.pem": f"{_OWN_PEM}.certificate.chain",
    "ssl.key.location": f"{_OWN_PEM}.location, one file with the key and the certificate",
    "ssl.key.pem": f"{_OWN_PEM}.key",
    "ssl.crl.location": "remove it: clients do not read lists of revoked certificates",
    "ssl.engine.id": "remove it: Python's ssl is used",
    "ssl.engine.location": "remove it: Python's ssl is used",
    "ssl.engine.factory.class": "remove it: no class of others is loaded",
    "enable.ssl.certificate.verification": (
        "remove it: brokers' certificates are always verified;"
        " ssl.endpoint.identification.algorithm= switches off the comparison of names"
    ),
    "https.ca.location": "write ssl.truststore.location into the options of sasl.jaas.config",
    "https.ca.pem": "write ssl.truststore.certificates into the options of sasl.jaas.config",
    "ssl.client.auth": "remove it: it is a setting of brokers",
}
_KNOWN: Final = {
    *(name for name in BROKER_SETTINGS if name.startswith(("ssl.", "sasl."))),
    *_OF_KAFKA.split(),
    *_OF_LIBRDKAFKA.split(),
} - {name for name in BROKER_SETTINGS if _ONLY_OF_BROKERS.fullmatch(name)} | {*_REFUSED}

# The settings that `ottla.client` reads; all other settings have no effect on it.
_USED: Final = re.compile(
    r"security\.protocol|sasl\.(mechanisms?|jaas\.config|username|password)"
    r"|sasl\.oauthbearer\.(client\..*|scope|token\.endpoint\.url)"
    r"|sasl\.login\.(retry\..*|connect\..*|read\..*|refresh\.window\.factor)"
    r"|ssl\.((keystore|truststore)\..*|key\.password|enabled\.protocols|cipher\.suites"
    r"|endpoint\.identification\.algorithm)"
)
# Only text of this form is shown as a name: a line of a key or a password does not match it.
_LIKE_A_NAME: Final = re.compile(r"[a-z][a-z_-]*(\.[a-z][a-z0-9_-]*)+", re.IGNORECASE)
_SHOWN_MAX = 80


def check_names(config: Mapping[str, str]) -> None:
    """Raise ClientError(INVALID_CONFIG) for a name that is unknown or refused."""
    for name in config:
        if name in _REFUSED:
            raise _wrong(f"{name} is not read by Ottla's clients; {_REFUSED[name]}")
        if name in _KNOWN or name.startswith(_PREFIXES):
            continue
        near = get_close_matches(name.lower(), _KNOWN, n=1, cutoff=0.75)
        if near:
            raise _wrong(f"{name} is no setting of Kafka's clients; did you mean {near[0]}?")
        raise _wrong(f"{_shown(name)} is no setting of Kafka's clients; correct or remove it")


def check_use(config: Mapping[str, str]) -> None:
    """Raise ClientError for an unknown security.protocol, or one that leaves settings unused.

    TLS or login settings with a protocol that does not use them mean that the protocol was
    forgotten.
    """
    protocol = config.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise _wrong(f"security.protocol={protocol} is not there: choose {' or '.join(PROTOCOLS)}")
    for family, what, has in (
        ("ssl.", "SSL or SASL_SSL", protocol.endswith("SSL")),
        ("sasl.", "SASL_SSL or SASL_PLAINTEXT", protocol.startswith("SASL")),
    ):
        idle = sorted(name for name in config if name.startswith(family))
        if idle and not has:
            is_set = "security.protocol" in config
            raise _wrong(
                f"{idle[0]} has no effect with security.protocol={protocol}"
                f"{'' if is_set else ', the default'}: set security.protocol to {what}, or remove"
                f" {', '.join(idle)}"
            )


def unused(names: Iterable[str]) -> list[str]:
    """Return the names, in order, that have no effect on Ottla's clients."""
    return sorted(name for name in names if not _USED.fullmatch(name))


def _shown(name: str) -> str:
    if len(name) <= _SHOWN_MAX and _LIKE_A_NAME.fullmatch(name):
        return name
    return "a name, not shown here as it may be a part of a secret,"


def _wrong(what: str) -> ClientError:
    return ClientError(ErrorCode.INVALID_CONFIG, what)
