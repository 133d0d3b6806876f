"""DescribeUserScramCredentials (50), version 0: no user has any here (KIP-554).

kafka-configs asks for them whenever it describes a user's quotas.
"""

from collections import Counter
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.settings.setting import shortened
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeUserScramCredentials(Handler):
    """Serves DescribeUserScramCredentials."""

    api = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    versions = Versions(0, 0)

    def handle(
        self, _request: RequestContext, body: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        """Each user asked for by name is unknown; of all users there are none."""
        counts = Counter(user.name for user in body.users or ())
        return DescribeUserScramCredentialsResponse(
            results=[_unknown(name, count) for name, count in counts.items()]
        )

    @staticmethod
    def on_error(
        body: DescribeUserScramCredentialsRequest,
        code: ErrorCode,
        message: str | None,
        _version: int,
    ) -> DescribeUserScramCredentialsResponse:
        """The error, and the same for each user that the request names."""
        results = [
            DescribeUserScramCredentialsResult(
                user=user.name, error_code=code, error_message=message
            )
            for user in body.users or ()
        ]
        return DescribeUserScramCredentialsResponse(
            error_code=code, error_message=message, results=results
        )


def _unknown(name: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for {shortened(name)} twice",
        )
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message="Attempt to describe a user credential that does not exist: "
        f"{shortened(name)}; there is no authentication here",
    )
