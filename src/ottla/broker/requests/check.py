"""The permission check of one request: asks the authorizer, and logs denials."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID, TopicId
from ottla.base.settings import BrokerSettings
from ottla.broker.requests.access import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Access
from ottla.broker.requests.auditing import Denials, Need
from ottla.broker.requests.request import RequestContext
from ottla.metadata.image import ClusterImage
from ottla.security.audit.chain import bounded
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource, title
from ottla.wire.api import api_name
from ottla.wire.notation import RESPONSES

Q = TypeVar("Q")

# `on_error(body, code, message, version)` returns a response with the error of the whole request.
OnError = Callable[[Any, ErrorCode, str | None, int], Any]

CODES: dict[AclResource, ErrorCode] = {
    AclResource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    # Only the delegation tokens of users are protected resources.
    AclResource.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
# Kafka's messages; the broker's log names the resource and the missing ACL.
MESSAGES: dict[ErrorCode, str] = {
    code: f"{what} authorization failed."
    for code, what in (
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster"),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional Id"),
        (ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "Delegation Token"),
    )
}


class RequestCheck(Generic[Q]):
    """Checks one client request before it is served. `on_error` belongs to its handler."""

    __slots__ = (
        "_denials",
        "_last",
        "access",
        "body",
        "image",
        "on_error",
        "request",
        "settings",
    )

    def __init__(
        self,
        access: Access,
        image: ClusterImage,
        settings: BrokerSettings,
        request: RequestContext,
        body: Q,
        on_error: OnError,
    ) -> None:
        self.access = access
        self.image = image
        self.settings = settings
        self.request = request
        self.body = body
        self.on_error = on_error
        self._denials = Denials(request)
        # The operation and resource type of the last denial.
        self._last: tuple[AclOperation, AclResource] | None = None

    @property
    def version(self) -> int:
        return self.request.version

    def sees(self, operation: AclOperation, kind: AclResource, name: str) -> bool:
        """Return whether the client may do the operation; logs no denial."""
        return self.access.allows(operation, kind, name)

    def code(self, operation: AclOperation, kind: AclResource, name: str) -> ErrorCode | None:
        """Return None if the client may do the operation, else the error for the resource."""
        if self.access.allows(operation, kind, name):
            return None
        self._log(operation, kind, name)
        return CODES[kind]

    def topic_code(
        self, operation: AclOperation, topic_id: UUID, name: str = ""
    ) -> ErrorCode | None:
        """Return the same as `code`, for a topic that newer versions name by id.

        An unknown id is allowed here, because the handler answers it with UNKNOWN_TOPIC_ID.
        """
        found = name if topic_id == NO_TOPIC_ID else self.topic_name(topic_id)
        return None if found is None else self.code(operation, AclResource.TOPIC, found)

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with that id; None if there is none."""
        topic = self.image.topic_by_id(TopicId(topic_id))
        return None if topic is None else topic.name

    def require(self, operation: AclOperation, kind: AclResource, name: str) -> None:
        """Raise OttlaError if the client may not do the operation."""
        code = self.code(operation, kind, name)
        if code is not None:
            raise refusal(code)

    def denial(self, operation: AclOperation, kind: AclResource, name: str) -> OttlaError:
        """Log a denial that does not depend on ACLs, and return its error."""
        self._log(operation, kind, name)
        return refusal(CODES[kind])

    def require_cluster(self, operation: AclOperation) -> None:
        """Raise OttlaError if the client may not do the operation on the cluster."""
        self.require(operation, AclResource.CLUSTER, CLUSTER_NAME)

    def sees_cluster(self, operation: AclOperation) -> bool:
        """Return whether the client may do the operation on the cluster; logs no denial."""
        return self.sees(operation, AclResource.CLUSTER, CLUSTER_NAME)

    def topic_operations(self, name: str) -> int:
        """Return the operations that the client may do on a topic, as a bit set."""
        return self.access.operations(TOPIC_OPERATIONS, AclResource.TOPIC, name)

    def cluster_operations(self) -> int:
        """Return the operations that the client may do on the cluster, as a bit set.

        This needs DESCRIBE.
        """
        if not self.sees_cluster(AclOperation.DESCRIBE):
            return 0
        return self.access.operations(CLUSTER_OPERATIONS, AclResource.CLUSTER, CLUSTER_NAME)

    # The type of the response depends on the API.
    def response(self, **fields: Any) -> Any:
        """Create a response of the request's API."""
        return RESPONSES[self.request.header.api_key](**fields)

    def end(self) -> None:
        """Report to the audit log the denials that were only counted."""
        more = self._denials.end()
        if more and self._last is not None:
            operation, kind = self._last
            self._put(operation, kind, "others of one request", f"and {more:,} others")

    def _log(self, operation: AclOperation, kind: AclResource, name: str) -> None:
        self._last = operation, kind
        if self._denials.add(Need(operation, kind, name)):
            # Shortened, because the log remembers the text, and clients choose the length of names.
            text = repr(bounded(name))
            self._put(operation, kind, text, text)

    def _put(self, operation: AclOperation, kind: AclResource, cause: str, names: str) -> None:
        """Log a denial; repeated denials have the same `cause`."""
        request, principal = self.request, self.access.principal
        client = request.connection
        api = api_name(request.header.api_key)
        needs = f"{operation.name} on {title(kind.name)}"
        what = f"{needs} {names}"
        client.refusals.log(
            (client.peer_host, str(principal), f"{needs} {cause}"),
            lambda: (
                f"denied {principal} from {client.peer_host} (client id {request.client_id!r}):"
                f" {api} needs {what}; `ottla acl explain` says which rule decides, `ottla acl add`"
                " grants it"
            ),
        )


def refusal(code: ErrorCode) -> OttlaError:
    """Return the error for a request that is denied as a whole."""
    return OttlaError(code, MESSAGES[code])
