"""OffsetDelete (47), version 0: deletes offsets of topics that no member reads (KIP-496)."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.audit.details import partition_changes
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.auditing import AdminChange, group_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, named, resource
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def _denied(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ],
    )


def _changes(body: OffsetDeleteRequest, response: OffsetDeleteResponse) -> Iterator[AdminChange]:
    """Return an audit line for each topic."""
    return partition_changes(
        group_need(AclOperation.DELETE, body.group_id),
        ((one.name, part.partition_index, None) for one in body.topics for part in one.partitions),
        (
            (one.name, part.partition_index, part.error_code)
            for one in response.topics
            for part in one.partitions
        ),
        code=response.error_code,
    )


@dataclass(slots=True, eq=False, repr=False)
class OffsetDelete(Handler):
    """Serves OffsetDelete."""

    api = Api(
        OffsetDeleteRequest,
        OffsetDeleteResponse,
        Versions(0, 0),
        needs=all_of(
            resource(AclOperation.DELETE, AclResource.GROUP, lambda body: body.group_id),
            each(
                lambda body: body.topics,
                lambda response: response.topics,
                named(AclOperation.READ, AclResource.TOPIC, lambda topic: topic.name),
                _denied,
            ),
        ),
        changes=_changes,
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partitions, lambda topic: topic.partitions),
        ),
    )

    view: ClusterView
    groups: Groups

    def handle(self, request: RequestContext, body: OffsetDeleteRequest) -> None:
        """Have the group's coordinator decide."""
        if not body.group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        image = self.view.image

        def exists(topic: str, index: int) -> bool:
            return image.partition(topic, index) is not None

        self.groups.run(
            body.group_id,
            WholeAnswer(request, body, self.on_error),
            lambda coordinator, call, at: coordinator.offsets.delete_offsets(
                call, body, exists, at
            ),
        )
