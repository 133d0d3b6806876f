"""What every request about ACLs is answered while there is no authorizer.

Kafka answers the same where `authorizer.class.name` is unset. Clients know the error: MirrorMaker
goes on without copying ACLs, and would log a failure for an API that is not served.
"""

from typing import Any, NoReturn

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.handler import Handler
from ottla.broker.requests.request import RequestContext


class NoAuthorizer(Handler):
    """Refuses every request; subclasses say how their API reports an error."""

    __slots__ = ()

    def handle(self, _request: RequestContext, _body: Any) -> NoReturn:
        """Raises OttlaError (SECURITY_DISABLED)."""
        raise OttlaError(
            ErrorCode.SECURITY_DISABLED,
            "No Authorizer is configured: all operations are allowed.",
        )
