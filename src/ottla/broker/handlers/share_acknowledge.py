"""ShareAcknowledge (79), versions 1-2: a member of a share group acknowledges its records.

Records are accepted, released or rejected; from version 2 on their locks may be renewed (KIP-932,
KIP-1222). The answer is sent when the acknowledgement is written.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.configs.features import require_feature
from ottla.broker.requests.check import MESSAGES
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, resource, topic_or_id
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share import SharePartitions
from ottla.broker.share.acknowledgements import (
    Results,
    acknowledge_all,
    acknowledgements,
    check_renewals,
)
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.responses import acknowledge_topics
from ottla.metadata.features import SHARE
from ottla.security.names import AclOperation, AclResource
from ottla.share.session import FINAL_EPOCH, INITIAL_EPOCH, MemberKey
from ottla.wire.messages.share_records import (
    AcknowledgePartitionData,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


def _denied(topic: AcknowledgeTopic, code: ErrorCode) -> ShareAcknowledgeTopicResponse:
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
    """Serves ShareAcknowledge."""

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
        """Acknowledge within the member's session."""
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
