"""CreateAcls (30), versions 1-3: adds ACLs, each independently; they apply on all brokers.

Without an authorizer the request is refused, as in Kafka.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.acls import Acls, require_acls, too_many
from ottla.broker.audit.details import acl_text
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.acl import Acl, Pattern, check_acl
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.wire.messages.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def _changes(body: CreateAclsRequest, response: CreateAclsResponse) -> Iterator[AdminChange]:
    """Return an audit line for each ACL; the answers are in the order of the request."""
    for wanted, one in zip(body.creations, response.results, strict=False):
        detail = {"added": acl_text(wanted, wanted.resource_pattern_type)}
        yield AdminChange((cluster_need(AclOperation.ALTER),), detail, one.error_code)


@dataclass(slots=True, eq=False, repr=False)
class CreateAcls(Handler):
    """Serves CreateAcls."""

    api = Api(
        CreateAclsRequest,
        CreateAclsResponse,
        Versions(1, 3),
        needs=cluster(AclOperation.ALTER),
        changes=_changes,
        on_error=lambda body, code, message: CreateAclsResponse(
            results=[_failed(code, message)] * len(body.creations)
        ),
    )

    acls: Acls | None

    async def handle(self, request: RequestContext, body: CreateAclsRequest) -> CreateAclsResponse:
        """Add the valid ACLs."""
        acls = require_acls(self.acls)
        too_many(len(body.creations))
        results: list[AclCreationResult] = []
        valid: list[Acl] = []
        for creation in body.creations:
            try:
                acl = _acl(creation)
                check_acl(acl)
                valid.append(acl)
                results.append(AclCreationResult(error_message=None))
            except OttlaError as error:
                results.append(_failed(error.code, error.message))
                _log_refusal(request, error)
        await acls.create(valid)
        return CreateAclsResponse(results=results)


def _acl(creation: AclCreation) -> Acl:
    try:
        return Acl(
            Pattern(
                AclResource(creation.resource_type),
                creation.resource_name,
                PatternType(creation.resource_pattern_type),
            ),
            creation.principal,
            creation.host,
            AclOperation(creation.operation),
            Permission(creation.permission_type),
        )
    except ValueError as error:
        raise OttlaError(ErrorCode.INVALID_REQUEST, f"The ACL holds an unknown {error}") from error


def _log_refusal(request: RequestContext, error: OttlaError) -> None:
    """Log once in ten minutes for each address that ACLs were refused: they protect nothing."""
    client = request.connection
    client.refusals.log(
        (client.peer_host, "ACL"),
        lambda: (
            f"refused an ACL of {client.principal} at {client.peer_host}:{client.peer_port}:"
            f" {error.message}"
        ),
    )


def _failed(code: ErrorCode, message: str | None) -> AclCreationResult:
    return AclCreationResult(error_code=code, error_message=message)
