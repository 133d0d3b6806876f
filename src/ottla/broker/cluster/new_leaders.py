"""Adds the current leaders to answers that reject partitions led elsewhere (KIP-951)."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId, TopicId
from ottla.broker.cluster.addresses import BrokerAddress, Reached, broker_address
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.view import ClusterView
from ottla.wire.messages import fetch, produce, share_records

_PRODUCE_SINCE = 10
_PRODUCE_IDS_SINCE = 13
_FETCH_SINCE = 16
_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class RedirectedRequest(Reached, Protocol):
    """A request, with its version and the listener it came over."""

    @property
    def version(self) -> int: ...


class _Leader(NamedTuple):
    id: BrokerId
    epoch: int


class NewLeaders:
    """Adds the current leaders and their addresses to answers for partitions led elsewhere."""

    def __init__(self, view: ClusterView, partitions: Partitions) -> None:
        self._view = view
        self._partitions = partitions

    def add_to_produce(self, request: RedirectedRequest, response: produce.ProduceResponse) -> None:
        """Add the leaders, with their addresses, of partitions that this broker does not lead."""
        if request.version < _PRODUCE_SINCE:
            return
        has_ids = request.version >= _PRODUCE_IDS_SINCE
        moved = (
            (self._name_of(topic.topic_id) if has_ids else topic.name, answer.index, answer)
            for topic in response.responses
            for answer in topic.partition_responses
            if answer.error_code in _MOVED
        )
        self._add(request, response, produce, moved)

    def add_to_fetch(self, request: RedirectedRequest, response: fetch.FetchResponse) -> None:
        """Do as `add_to_produce`; all versions that have this field identify topics by id."""
        if request.version < _FETCH_SINCE:
            return
        moved = (
            (self._name_of(topic.topic_id), answer.partition_index, answer)
            for topic in response.responses
            for answer in topic.partitions
            if answer.error_code in _MOVED
        )
        self._add(request, response, fetch, moved)

    def add_to_share(
        self,
        request: RedirectedRequest,
        response: share_records.ShareFetchResponse | share_records.ShareAcknowledgeResponse,
    ) -> None:
        """Do as `add_to_produce`, for share group members."""
        moved = (
            (self._name_of(topic.topic_id), answer.partition_index, answer)
            for topic in response.responses
            for answer in topic.partitions
            if answer.error_code in _MOVED or getattr(answer, "acknowledge_error_code", 0) in _MOVED
        )
        self._add(request, response, share_records, moved)

    def _add(
        self,
        request: RedirectedRequest,
        response: Any,
        wire: Any,
        moved: Iterable[tuple[str, int, Any]],
    ) -> None:
        """Add the leader to each part of the answer in `moved`, and the leaders' addresses.

        `moved` yields topic, partition index and part of the answer. `wire` is the module that
        declares the response.
        """
        leaders: dict[BrokerId, None] = {}
        for topic, index, answer in moved:
            leader = self._leader_of(topic, index)
            if leader is not None:
                answer.current_leader = wire.LeaderIdAndEpoch(
                    leader_id=leader.id, leader_epoch=leader.epoch
                )
                leaders[leader.id] = None
        if leaders:
            response.node_endpoints = [
                wire.NodeEndpoint(node_id=each.id, host=each.host, port=each.port, rack=each.rack)
                for each in self._addresses(request, leaders)
            ]

    def _name_of(self, topic_id: UUID) -> str:
        topic = self._view.image.topic_by_id(TopicId(topic_id))
        return "" if topic is None else topic.name

    def _leader_of(self, topic: str, index: int) -> _Leader | None:
        """Return the leader in the newer of replica state and image; None if it is this broker."""
        state = self._view.image.partition(topic, index)
        partition = self._partitions.find(topic, index)
        known = None if partition is None else partition.image
        if known is not None and (state is None or known.leader_epoch >= state.leader_epoch):
            state = known
        if state is None or state.leader < 0 or state.leader == self._view.broker_id:
            return None
        return _Leader(state.leader, state.leader_epoch)

    def _addresses(
        self, request: RedirectedRequest, leaders: Iterable[BrokerId]
    ) -> list[BrokerAddress]:
        found = [broker_address(self._view.image, leader, request) for leader in leaders]
        return [address for address in found if address is not None]
