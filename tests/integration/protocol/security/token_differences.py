"""Delegation tokens that Ottla does not make, or not accept, and Kafka does."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.security.names import AclOperation, AclResource
from ottla.security.sasl.scram_keys import ScramMechanism
from ottla.security.tokens import token_password
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.integration.protocol.security.pair import Ports, scram_login, until
from tests.integration.protocol.security.tokens import Script

_TOPIC = "topic-of-alice"
# By Ottla, and by Kafka; see docs/reference/differences.md.
DIFFERENT = {
    "of the owner Team:alice": ("INVALID_PRINCIPAL_TYPE", "a login as User:alice"),
    "with names of 20,000 bytes": ("INVALID_REQUEST", "a login as User:alice"),
    "expired": ("SASL_AUTHENTICATION_FAILED", "a session of 0 ms"),
}


def differing(ports: Ports) -> dict[str, str]:
    """What comes of each."""
    script = Script(ports)
    topic = CreatableTopic(name=_TOPIC, num_partitions=1, replication_factor=1)
    script.admin.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
    script.allow("User:alice", AclOperation.DESCRIBE, AclResource.TOPIC, _TOPIC)
    until(lambda: script.topics(script.alice), lambda topics: _TOPIC in topics)
    script.allow("User:bob", AclOperation.CREATE_TOKENS, AclResource.USER, "Team:alice")
    owner = {"owner_principal_type": "Team", "owner_principal_name": "alice"}
    found = (
        script.create("", script.bob, **owner),
        script.create("", script.alice, renewers=[("User", "x" * 20_000)]),
        script.create("", script.alice, max_lifetime_ms=1),
    )
    came = [
        ErrorCode(each.error_code).name if each.error_code else _login(script, each)
        for each in found
    ]
    script.forbid()
    return dict(zip(DIFFERENT, came, strict=True))


def _login(script: Script, made: Any) -> str:
    password, mechanism = token_password(made.hmac), ScramMechanism.SCRAM_SHA_256
    client, answer = scram_login(
        script.ports.sasl, mechanism, made.token_id, password, is_token=True
    )
    if answer.error_code:
        return ErrorCode(answer.error_code).name
    if answer.session_lifetime_ms <= 0:
        return f"a session of {answer.session_lifetime_ms} ms"
    return f"a login as {'User:alice' if _TOPIC in script.topics(client) else 'another'}"
