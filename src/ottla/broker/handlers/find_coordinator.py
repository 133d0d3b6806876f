"""FindCoordinator (10), versions 0-6: names the coordinator of a group or transactional id.

From version 4 on a request may have many keys. Looking up a coordinator creates
`__consumer_offsets`, `__transaction_state` or `__share_group_state` if it is missing. Groups of all
kinds have key type 0. Key type 2 is for the state of a share partition (KIP-932).
"""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.addresses import BrokerAddress, broker_address
from ottla.broker.cluster.peers import Peers
from ottla.broker.groups import Groups
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer, Guard, each, named
from ottla.broker.requests.portions import in_portions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.states import ShareStates, require_key
from ottla.broker.topics.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from ottla.broker.topics.topics import Topics
from ottla.broker.transactions import Transactions
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_TOPICS = {
    _GROUP: CONSUMER_OFFSETS,
    _TRANSACTION: TRANSACTION_STATE,
    _SHARE: SHARE_GROUP_STATE,
}

_BATCHED_FROM = 4
_SHARE_FROM = 6


def _needs(
    check: RequestCheck[FindCoordinatorRequest],
) -> Amend[FindCoordinatorResponse] | DeniedAnswer | None:
    """Require DESCRIBE on a group or transactional id, CLUSTER_ACTION for a share partition."""
    if check.body.key_type == _SHARE:
        check.require_cluster(AclOperation.CLUSTER_ACTION)
        return None
    is_transaction = check.body.key_type == _TRANSACTION
    kind = AclResource.TRANSACTIONAL_ID if is_transaction else AclResource.GROUP
    if check.version < _BATCHED_FROM:
        check.require(AclOperation.DESCRIBE, kind, check.body.key)
        return None
    return _describe_each[kind](check)


_describe_each: dict[AclResource, Guard[FindCoordinatorRequest, FindCoordinatorResponse]] = {
    kind: each(
        lambda body: body.coordinator_keys,
        lambda response: response.coordinators,
        named(AclOperation.DESCRIBE, kind, str),
    )
    for kind in (AclResource.GROUP, AclResource.TRANSACTIONAL_ID)
}


@dataclass(slots=True, eq=False, repr=False)
class FindCoordinator(Handler):
    """Serves FindCoordinator; creates the internal topic if it is missing."""

    api = Api(
        FindCoordinatorRequest,
        FindCoordinatorResponse,
        Versions(0, 6),
        needs=_needs,
        portions=in_portions(
            lambda body: body.coordinator_keys, lambda response: response.coordinators
        ),
    )

    view: ClusterView
    groups: Groups
    transactions: Transactions
    share_states: ShareStates
    topics: Topics
    peers: Peers

    async def handle(
        self, request: RequestContext, body: FindCoordinatorRequest
    ) -> FindCoordinatorResponse:
        """Find the coordinator of each key."""
        keys = body.coordinator_keys if request.version >= _BATCHED_FROM else [body.key]
        topic = _topic(body.key_type, request.version)
        if body.key_type == _SHARE:
            for key in keys:
                require_key(key)
        await self.topics.auto_create(topic)
        index_of = self._index_of(body.key_type)
        return _response(
            [self._find(request, key, topic, index_of(key)) for key in keys], request.version
        )

    def _index_of(self, key_type: int) -> Callable[[str], int | None]:
        if key_type == _TRANSACTION:
            return self.transactions.partition_index
        if key_type == _SHARE:
            return self.share_states.partition_index
        return self.groups.partition_index

    def _find(
        self, request: RequestContext, key: str, topic: str, index: int | None
    ) -> Coordinator:
        assert index is not None, "the topic was made above"
        partition = self.view.image.partition(topic, index)
        address: BrokerAddress | None = None
        # If the connection to the leader has just broken, the leader is probably dead, and will be
        # replaced soon.
        if partition is not None and partition.leader in self.peers.answering():
            address = broker_address(self.view.image, partition.leader, request)
        if address is None:
            return _failed(
                key,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"{topic}-{index} has no leader at the moment; try again",
            )
        return Coordinator(key=key, node_id=address.id, host=address.host, port=address.port)

    @staticmethod
    def on_error(
        body: FindCoordinatorRequest, code: ErrorCode, message: str | None, version: int
    ) -> FindCoordinatorResponse:
        """Return the error for every key."""
        keys = body.coordinator_keys if version >= _BATCHED_FROM else [body.key]
        return _response([_failed(key, code, message) for key in keys], version)


def _topic(key_type: int, version: int) -> str:
    """Return the internal topic for a key type."""
    topic = _TOPICS.get(key_type)
    if topic is None or (key_type == _SHARE and version < _SHARE_FROM):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"key type {key_type} is not served in version {version}; 0 stands for groups, 1 for "
            "transactional ids, and from version 6 on 2 for share partitions",
        )
    return topic


def _failed(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )


def _response(found: list[Coordinator], version: int) -> FindCoordinatorResponse:
    if version >= _BATCHED_FROM:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )
