"""DescribeUserScramCredentials (50), version 0: lists the users' SCRAM mechanisms (KIP-554).

kafka-configs sends it whenever it describes a user's quotas.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, shortened
from ottla.broker.login.users import ScramUsers
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.security.sasl.scram_keys import ScramCredential, ScramMechanism
from ottla.wire.messages.user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeUserScramCredentials(Handler):
    """Serves DescribeUserScramCredentials."""

    api = Api(
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
        Versions(0, 0),
        needs=cluster(AclOperation.DESCRIBE),
    )

    users: ScramUsers

    def handle(
        self, _request: RequestContext, body: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        """Return the named users, or all of them: mechanisms and iterations only."""
        known = self.users.all()
        counts = Counter([user.name for user in body.users or ()] or known.keys())
        return DescribeUserScramCredentialsResponse(
            error_message=None,
            results=[_described(name, count, known.get(name)) for name, count in counts.items()],
        )

    @staticmethod
    def on_error(
        body: DescribeUserScramCredentialsRequest,
        code: ErrorCode,
        message: str | None,
        _version: int,
    ) -> DescribeUserScramCredentialsResponse:
        """Return the error, at the top level and for each user that the request names."""
        results = [_failed(user.name, code, message) for user in body.users or ()]
        return DescribeUserScramCredentialsResponse(
            error_code=code, error_message=message, results=results
        )


def _described(
    name: str, count: int, held: Mapping[ScramMechanism, ScramCredential] | None
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        message = f"Cannot describe SCRAM credentials for {shortened(name)} twice"
        return _failed(name, ErrorCode.DUPLICATE_RESOURCE, message)
    if held is None:
        message = f"Attempt to describe a user credential that does not exist: {shortened(name)}"
        return _failed(name, ErrorCode.RESOURCE_NOT_FOUND, message)
    return DescribeUserScramCredentialsResult(
        user=name,
        error_message=None,
        credential_infos=[
            CredentialInfo(mechanism=mechanism.number, iterations=credential.iterations)
            for mechanism, credential in held.items()
        ],
    )


def _failed(name: str, code: ErrorCode, message: str | None) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=message)
