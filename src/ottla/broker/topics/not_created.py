"""Logs why a topic could not be created automatically.

Metadata answers with a code and no message, and most clients ask again until they give up.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.request import RequestContext

# The setting of this broker that causes the failure.
_SETTINGS = {
    ErrorCode.POLICY_VIOLATION: "num.partitions",
    ErrorCode.INVALID_PARTITIONS: "num.partitions",
    ErrorCode.INVALID_REPLICATION_FACTOR: "default.replication.factor",
}
# Already logged elsewhere, or not a failure.
_LOGGED_BEFORE = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


def log_not_created(request: RequestContext, topic: str, error: OttlaError) -> None:
    """Log the failure, at intervals for each address, topic and error."""
    if error.code in _LOGGED_BEFORE:
        return
    client = request.connection

    def line() -> str:
        setting = _SETTINGS.get(error.code)
        remedy = (
            f"; change {setting} in this broker's server.properties, or create the topic with: "
            f"ottla topic create {topic}"
            if setting
            else ""
        )
        return (
            f"topic {topic} is not created automatically for {client.peer_host}:"
            f"{client.peer_port} (client id {request.client_id!r}): {error.code.name}, "
            f"{error.message}{remedy}"
        )

    client.refusals.log((client.peer_host, "auto-create", topic, error.code), line)
