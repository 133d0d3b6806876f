"""Logs batches that were refused because of a setting or because of their content.

The producer's answer has the same reason. The log line is for the operator, who cannot see the
client's log or code. The fast path leaves all such batches to the slow path, which logs them.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.settings import BrokerSettings, topic_value
from ottla.base.settings.resolve import ConfigSource
from ottla.broker.requests.request import RequestContext
from ottla.metadata.image import ClusterImage

# For each error, the topic setting that causes it, if any, and the remedy.
_CAUSES = {
    ErrorCode.MESSAGE_TOO_LARGE: (
        "max.message.bytes",
        "or lower the producer's max.request.size and batch.size",
    ),
    ErrorCode.RECORD_LIST_TOO_LARGE: ("segment.bytes", "or lower the producer's batch.size"),
    ErrorCode.NOT_ENOUGH_REPLICAS: ("min.insync.replicas", "or bring brokers back"),
    ErrorCode.INVALID_TIMESTAMP: ("", ""),
    ErrorCode.INVALID_RECORD: ("", ""),
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: ("", ""),
    ErrorCode.CORRUPT_MESSAGE: ("", ""),
}
_SOURCES = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "set on the topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "{name}, set on this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "{name}, set on all brokers",
    ConfigSource.STATIC_BROKER_CONFIG: "{name}, set when this broker was started",
    ConfigSource.DEFAULT_CONFIG: "the default of {name}",
}


def log_refused_batch(
    request: RequestContext,
    partition: TopicPartition,
    size: int,
    error: OttlaError,
    image: ClusterImage,
    settings: BrokerSettings,
) -> None:
    """Log why a batch of `size` bytes was refused, if the operator can do something about it.

    Logged at most once per interval for each topic, client id, address and error.
    """
    if error.code not in _CAUSES:
        return
    client, client_id = request.connection, request.client_id

    def line() -> str:
        return (
            f"refused a batch of {size} bytes for {partition} from the producer {client_id!r} at"
            f" {client.peer_host}:{client.peer_port}: {error.code.name}, {error.message}"
            f"{_remedy(partition.topic, error.code, image, settings)}"
        )

    client.refusals.log((client.peer_host, client_id, partition.topic, error.code), line)


def _remedy(topic: str, code: ErrorCode, image: ClusterImage, settings: BrokerSettings) -> str:
    name, besides = _CAUSES[code]
    found = image.topic(topic)
    if not name or found is None:
        return ""
    resolved = topic_value(name, found.configs, settings)
    behind = resolved.synonyms[0].name if resolved.synonyms else name
    where = _SOURCES[resolved.source].format(name=behind)
    value = resolved.setting.text_of(resolved.value)
    return (
        f"; {name} is {value} ({where}): change it with `ottla config set topic {topic}"
        f" {name}=...`, {besides}"
    )
