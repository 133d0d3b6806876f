"""What every request about ACLs is answered while there is no authorizer.

Kafka answers the same where `authorizer.class.name` is unset. Clients know the error: MirrorMaker
goes on without copying ACLs, and would log a failure for an API that is not served.
"""

from typing import NoReturn

from ottla.base.errors import ErrorCode, OttlaError


def refuse(_broker: object, _request: object, _body: object) -> NoReturn:
    """Raises OttlaError (SECURITY_DISABLED)."""
    raise OttlaError(
        ErrorCode.SECURITY_DISABLED,
        "No Authorizer is configured: all operations are allowed.",
    )
