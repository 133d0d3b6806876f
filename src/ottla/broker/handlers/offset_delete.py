"""OffsetDelete (47), version 0: deletes offsets of topics that no member reads (KIP-496)."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.wire.api import ApiKey
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


@dataclass(slots=True, eq=False, repr=False)
class OffsetDelete(Handler):
    """Serves OffsetDelete."""

    api = ApiKey.OFFSET_DELETE
    versions = Versions(0, 0)

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

    @staticmethod
    def on_error(
        _body: OffsetDeleteRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> OffsetDeleteResponse:
        """An error for the request as a whole."""
        return OffsetDeleteResponse(error_code=code)
