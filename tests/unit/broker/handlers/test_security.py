"""SASL, credentials and ACLs where they are refused, and the handshake of brokers."""

import random

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.admission import Admission, proven_broker
from ottla.broker.cluster.handshake import Credentials, Opener, Party
from ottla.broker.handlers.acls import CreateAcls, DeleteAcls, DescribeAcls
from ottla.broker.handlers.between_brokers import BrokerHandshake
from ottla.broker.handlers.sasl import SaslAuthenticate, SaslHandshake
from ottla.broker.handlers.user_scram_credentials import (
    AlterUserScramCredentials,
    DescribeUserScramCredentials,
)
from ottla.broker.login.users import ScramUsers
from ottla.metadata.image import BrokerImage
from ottla.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ottla.wire.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

from .replica_world import Line, call, play


def test_sasl_is_refused_on_a_plaintext_listener(caplog):
    """The client's answer and the broker's log name the remedy; the log says it once a client."""

    async def scenario(_world):
        line = Line()
        request = SaslHandshakeRequest(mechanism="PLAIN")
        answer = await call(SaslHandshake(), request, line=line)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        answer = await call(SaslAuthenticate(), SaslAuthenticateRequest(), line=line)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert "security.protocol=PLAINTEXT" in answer.error_message
        (logged,) = [each.getMessage() for each in caplog.records]
        assert logged == (
            "refused 10.0.0.9:4711 (client id 'tester'): it asked for SASL on the listener"
            " PLAINTEXT, which is PLAINTEXT: set security.protocol=PLAINTEXT in the client, and no"
            " sasl settings; repetitions are not logged for 10 minutes"
        )

    play(scenario)


def test_a_credential_is_set_and_described_without_its_secrets():
    """A mistake of one user does not keep another's credential back."""

    async def scenario(world):
        await world.store.ensure("/config/changes")
        users = ScramUsers(world.store, world.clock, b"secret")
        right, wrong = (
            ScramCredentialUpsertion(
                name=name, mechanism=1, iterations=count, salt=b"s", salted_password=bytes(32)
            )
            for name, count in (("alice", 4096), ("bob", 1))
        )
        request = AlterUserScramCredentialsRequest(upsertions=[right, wrong])
        altered = await call(AlterUserScramCredentials(users), request)
        assert [(one.user, ErrorCode(one.error_code).name) for one in altered.results] == [
            ("alice", "NONE"),
            ("bob", "UNACCEPTABLE_CREDENTIAL"),
        ]
        request = DescribeUserScramCredentialsRequest(users=None)
        (alice,) = (await call(DescribeUserScramCredentials(users), request)).results
        assert alice.user == "alice"
        assert [(one.mechanism, one.iterations) for one in alice.credential_infos] == [(1, 4096)]
        other = ScramUsers(world.store, world.clock, b"secret")
        await other.load()
        assert other.all() == users.all()

    play(scenario)


def test_every_user_of_a_refused_request_gets_the_error():
    """Besides the answer as a whole, where it has an error of its own."""
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    request = DescribeUserScramCredentialsRequest(users=[UserName(name="alice")])
    answer = DescribeUserScramCredentials.on_error(request, refused, "why", 0)
    assert (answer.error_code, answer.error_message) == (refused, "why")
    assert [(one.user, one.error_code) for one in answer.results] == [("alice", refused)]
    deletion = ScramCredentialDeletion(name="alice", mechanism=1)
    altering = AlterUserScramCredentialsRequest(deletions=[deletion, deletion])
    altered = AlterUserScramCredentials.on_error(altering, refused, "why", 0)
    assert [(one.user, one.error_code, one.error_message) for one in altered.results] == [
        ("alice", refused, "why")
    ]


def test_acls_are_refused_without_an_authorizer():
    """For each ACL of the request, in Kafka's words."""
    refused = (
        ErrorCode.SECURITY_DISABLED,
        "No Authorizer is configured: all operations are allowed; set authorizer.class.name",
    )

    async def scenario(_world):
        request = CreateAclsRequest(creations=[AclCreation(), AclCreation()])
        created = (await call(CreateAcls(None), request)).results
        assert [(each.error_code, each.error_message) for each in created] == [refused] * 2
        request = DeleteAclsRequest(filters=[DeleteAclsFilter()])
        deleted = (await call(DeleteAcls(None), request)).filter_results
        assert [(each.error_code, each.error_message) for each in deleted] == [refused]
        described = await call(DescribeAcls(None), DescribeAclsRequest())
        assert (described.error_code, described.error_message) == refused
        assert described.resources == []

    play(scenario)


def credentials(broker_id, epoch, cluster="cluster", secret=b"secret"):
    return Credentials(
        BrokerId(broker_id), cluster, secret, random.Random(broker_id).randbytes, lambda: epoch
    )


def handshake(world, listener="PLAINTEXT"):
    return BrokerHandshake(Admission(credentials(1, 7), lambda: world.view.image), listener)


def test_a_broker_that_knows_the_secret_is_proven_in_two_calls():
    """After the first of them it is a stranger still."""

    async def scenario(world):
        opener, line, handler = Opener(credentials(2, 5), 1), Line(), handshake(world)
        challenge = await call(handler, opener.first(), line=line)
        assert proven_broker(line) is None
        verdict = await call(handler, opener.second(challenge), line=line)
        assert opener.finish(verdict) == Party(1, 7)
        assert proven_broker(line) == 2

    play(scenario)


def test_a_broker_that_does_not_know_the_secret_is_not_believed():
    """Nor is what it claims to be: the opener finds out by itself, the receiver by the proof."""

    async def scenario(world):
        stranger, line, handler = (
            Opener(credentials(2, 5, secret=b"x"), 1),
            Line(),
            handshake(world),
        )
        challenge = await call(handler, stranger.first(), line=line)
        with pytest.raises(OttlaError) as caught:
            stranger.second(challenge)
        assert caught.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        forged = stranger.first()
        forged.proof = bytes(32)
        verdict = await call(handler, forged, line=line)
        assert verdict.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert proven_broker(line) is None

    play(scenario)


@pytest.mark.parametrize(
    ("broker", "listener", "code"),
    [
        (credentials(2, 5, cluster="other"), "PLAINTEXT", ErrorCode.INCONSISTENT_CLUSTER_ID),
        (credentials(1, 5), "PLAINTEXT", ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        (credentials(2, 2), "PLAINTEXT", ErrorCode.STALE_BROKER_EPOCH),
        (credentials(2, 5), "CLIENTS", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_a_broker_that_does_not_belong_here_is_refused(broker, listener, code):
    """Of another cluster, of this id, of an earlier registration, on the clients' listener."""

    async def scenario(world):
        image = world.view.image
        world.view.replace(image.with_broker(BrokerImage(BrokerId(2), {}, epoch=4)))
        answer = await call(handshake(world), Opener(broker, 1).first(), listener=listener)
        assert answer.error_code == code
        assert answer.error_message

    play(scenario)
