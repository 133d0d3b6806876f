"""The handlers that read and change the SCRAM credentials of users."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.broker.login.users import ScramUsers
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation
from ottla.security.sasl.scram_keys import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    credential_of,
    mechanism_numbered,
)
from ottla.wire.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.source import STEP


@dataclass(slots=True, eq=False, repr=False)
class DescribeUserScramCredentials(Handler):
    """DescribeUserScramCredentials (50), version 0: lists the users' SCRAM mechanisms (KIP-554).

    kafka-configs sends it whenever it describes a user's quotas.
    """

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
        """Return the mechanisms and iterations of the named users, or of all users."""
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
        """Return the error at the top level and for each user that the request names."""
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


_Change = ScramCredentialDeletion | ScramCredentialUpsertion
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_Wanted = dict[ScramMechanism, ScramCredential | None]


def _credential_changes(
    body: AlterUserScramCredentialsRequest, response: AlterUserScramCredentialsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each credential, without any part of the credential."""
    codes = {one.user: one.error_code for one in response.results}
    for wanted in _changes(body):
        detail: dict[str, object] = {
            "user": bounded(wanted.name),
            "mechanism": _MECHANISMS.get(wanted.mechanism, str(wanted.mechanism)),
            "credential": "removed",
        }
        if isinstance(wanted, ScramCredentialUpsertion):
            detail |= {"credential": "set", "iterations": wanted.iterations}
        need = cluster_need(AclOperation.ALTER)
        yield AdminChange((need,), detail, codes.get(wanted.name, 0))


@dataclass(slots=True, eq=False, repr=False)
class AlterUserScramCredentials(Handler):
    """AlterUserScramCredentials (51), version 0: sets and removes users' credentials (KIP-554).

    Each user is altered independently; the answer has the user's first error. The client has
    already hashed the password.
    """

    api = Api(
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
        Versions(0, 0),
        needs=cluster(AclOperation.ALTER),
        changes=_credential_changes,
    )

    users: ScramUsers

    async def handle(
        self, _request: RequestContext, body: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        """Alter each user for whom all changes are valid."""
        wanted: dict[str, _Wanted] = {}
        errors: dict[str, OttlaError] = {}
        for index, change in enumerate(_changes(body)):
            if index % STEP == STEP - 1:
                # Let the loop serve other requests before the next user.
                await asyncio.sleep(0)
            of_user = wanted.setdefault(change.name, {})
            if change.name in errors:
                continue
            try:
                mechanism = self._check(change, of_user)
                of_user[mechanism] = _credential(mechanism, change)
            except OttlaError as error:
                errors[change.name] = error
        results: list[AlterUserScramCredentialsResult] = []
        for index, (user, of_user) in enumerate(wanted.items()):
            if index % STEP == STEP - 1:
                await asyncio.sleep(0)
            found = errors.get(user)
            if found is None:
                await self.users.alter(user, of_user)
            results.append(_result(user, found))
        return AlterUserScramCredentialsResponse(results=results)

    def _check(self, change: _Change, earlier: _Wanted) -> ScramMechanism:
        """Check a change and return its mechanism. `earlier` has the user's earlier changes.

        Raises OttlaError.
        """
        if not change.name:
            raise OttlaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        mechanism = mechanism_numbered(change.mechanism)
        if mechanism is None:
            raise OttlaError(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM,
                f"Unknown SCRAM mechanism {change.mechanism}; there are 1 (SCRAM-SHA-256) and 2 "
                "(SCRAM-SHA-512)",
            )
        if mechanism in earlier:
            raise OttlaError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
        if isinstance(change, ScramCredentialDeletion):
            if self.users.find(mechanism, change.name) is None:
                raise OttlaError(
                    ErrorCode.RESOURCE_NOT_FOUND,
                    "Attempt to delete a user credential that does not exist: "
                    f"{shortened(change.name)} has none for {mechanism.sasl_name}",
                )
        elif not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
            raise OttlaError(
                ErrorCode.UNACCEPTABLE_CREDENTIAL,
                f"Too {'few' if change.iterations < ITERATIONS_MIN else 'many'} iterations: "
                f"{change.iterations}; {ITERATIONS_MIN} to {ITERATIONS_MAX} are accepted",
            )
        elif not change.salt or not change.salted_password:
            # A hash of another length is stored, as in Kafka, but no password matches it.
            raise OttlaError(
                ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salt or the salted password is empty"
            )
        return mechanism

    @staticmethod
    def on_error(
        body: AlterUserScramCredentialsRequest,
        code: ErrorCode,
        message: str | None,
        _version: int,
    ) -> AlterUserScramCredentialsResponse:
        """Return the error for each user that the request names."""
        names = dict.fromkeys(change.name for change in _changes(body))
        error = OttlaError(code, message or "")
        return AlterUserScramCredentialsResponse(results=[_result(name, error) for name in names])


def _changes(body: AlterUserScramCredentialsRequest) -> list[_Change]:
    return [*body.deletions, *body.upsertions]


def _credential(mechanism: ScramMechanism, change: _Change) -> ScramCredential | None:
    if isinstance(change, ScramCredentialDeletion):
        return None
    return credential_of(
        mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations
    )


def _result(user: str, error: OttlaError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user=user, error_message=None)
    return AlterUserScramCredentialsResult(
        user=user, error_code=error.code, error_message=error.message
    )
