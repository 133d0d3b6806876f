"""The handlers by which members of share groups acquire and acknowledge records."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.configs.features import require_feature
from ottla.broker.requests.check import MESSAGES, RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, resource, topic_or_id
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share import SharePartitions
from ottla.broker.share.acknowledgements import (
    Results,
    acknowledge_all,
    acknowledge_topics,
    acknowledgements,
    check_renewals,
)
from ottla.broker.share.delayed_share_fetch import DelayedShareFetch
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.metadata.features import SHARE
from ottla.security.names import AclOperation, AclResource
from ottla.share.session import FINAL_EPOCH, INITIAL_EPOCH, MemberKey, SessionSlot
from ottla.wire.messages.share_records import (
    AcknowledgePartitionData,
    FetchTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)


def _needs(check: RequestCheck[ShareFetchRequest]) -> None:
    """Require READ on the group; the session checks READ on its topics at each fetch.

    Acknowledgements for a topic that the client may no longer READ are ignored.
    """
    check.require(AclOperation.READ, AclResource.GROUP, check.body.group_id or "")
    for asked in check.body.topics:
        if check.topic_code(AclOperation.READ, asked.topic_id) is not None:
            for partition in asked.partitions:
                partition.acknowledgement_batches = []


@dataclass(slots=True, eq=False, repr=False)
class ShareFetch(Handler):
    """ShareFetch (78), versions 1-2: returns records to members of share groups.

    The request may also acknowledge records. Each member has a session (KIP-932). A
    `DelayedShareFetch` waits up to `max_wait_ms` for `min_bytes`, then answers. From version 2 on a
    client may request a strict record limit (KIP-1206) and renew locks (KIP-1222).
    """

    api = Api(ShareFetchRequest, ShareFetchResponse, Versions(1, 2), needs=_needs)

    view: ClusterView
    runtime: Runtime
    settings: BrokerSettings
    sharing: SharePartitions
    group_settings: ShareGroupSettings
    new_leaders: NewLeaders

    def handle(self, request: RequestContext, body: ShareFetchRequest) -> None:
        """Open or resume the member's session, and serve the request."""
        require_feature(self.view.image, SHARE)
        if not body.group_id or not body.member_id:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST, "a share fetch names its group and its member"
            )
        key = MemberKey(body.group_id, body.member_id)
        acknowledged = acknowledgements(body.topics)
        check_renewals(acknowledged, is_renew=body.is_renew_ack)
        if body.share_session_epoch == INITIAL_EPOCH:
            if acknowledged:
                raise OttlaError(
                    ErrorCode.INVALID_REQUEST,
                    "a share session begins without acknowledgements: nothing was acquired in it",
                )
            session = self.sharing.open_session(key, request.connection)
        else:
            session = self.sharing.resume_session(key, body.share_session_epoch, request.connection)
        if body.share_session_epoch != FINAL_EPOCH:
            session.merge(
                (
                    SessionSlot(topic.topic_id, part.partition_index)
                    for topic in body.topics
                    for part in topic.partitions
                ),
                (
                    SessionSlot(topic.topic_id, index)
                    for topic in body.forgotten_topics_data
                    for index in topic.partitions
                ),
            )
        body.max_bytes = min(body.max_bytes, self.settings.integer("fetch.max.bytes"))
        DelayedShareFetch(
            self.runtime,
            self.sharing,
            self.group_settings,
            self.new_leaders,
            request,
            body,
            session,
        ).start(acknowledged)


def _denied(topic: FetchTopic, code: ErrorCode) -> ShareAcknowledgeTopicResponse:
    return ShareAcknowledgeTopicResponse(
        topic_id=topic.topic_id,
        partitions=[
            AcknowledgePartitionData(
                partition_index=partition.partition_index,
                error_code=code,
                error_message=MESSAGES[code],
            )
            for partition in topic.partitions
        ],
    )


@dataclass(slots=True, eq=False, repr=False)
class ShareAcknowledge(Handler):
    """ShareAcknowledge (79), versions 1-2: a member of a share group acknowledges its records.

    It accepts, releases or rejects them; from version 2 on it may also renew their locks (KIP-932,
    KIP-1222). The answer is sent when the acknowledgement is written to the share state.
    """

    api = Api(
        ShareAcknowledgeRequest,
        ShareAcknowledgeResponse,
        Versions(1, 2),
        needs=all_of(
            resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
            each(
                lambda body: body.topics,
                lambda response: response.responses,
                topic_or_id(AclOperation.READ, lambda topic: (topic.topic_id, "")),
                _denied,
                error_of=lambda response: response.error_code,
            ),
        ),
    )

    view: ClusterView
    sharing: SharePartitions
    group_settings: ShareGroupSettings
    new_leaders: NewLeaders

    def handle(self, request: RequestContext, body: ShareAcknowledgeRequest) -> None:
        """Acknowledge records in the member's session."""
        require_feature(self.view.image, SHARE)
        if not body.group_id or not body.member_id:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST, "a share acknowledgement names its group and its member"
            )
        if body.share_session_epoch == INITIAL_EPOCH:
            raise OttlaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a share session begins with a fetch"
            )
        acknowledged = acknowledgements(body.topics)
        check_renewals(acknowledged, is_renew=body.is_renew_ack)
        key = MemberKey(body.group_id, body.member_id)
        session = self.sharing.resume_session(key, body.share_session_epoch, request.connection)

        def answer(results: Results) -> None:
            if body.share_session_epoch == FINAL_EPOCH:
                self.sharing.close_session(session)
            response = ShareAcknowledgeResponse(
                acquisition_lock_timeout_ms=self.group_settings.config(key.group_id).limits.lock_ms,
                responses=acknowledge_topics(
                    (slot, code, message) for slot, (code, message) in results.items()
                ),
            )
            self.new_leaders.add_to_share(request, response)
            request.reply(response)

        acknowledge_all(self.sharing, key, acknowledged, answer)
