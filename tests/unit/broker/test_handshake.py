"""The handshake of brokers as a pure exchange of messages: who is believed, and who is not."""

import itertools

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.handshake import Credentials, Opener, Party, Receiver
from ottla.wire.codec import decode, encode
from ottla.wire.messages.between_brokers import BrokerHandshakeRequest, BrokerHandshakeResponse

SECRET = bytes(range(32))
OPENER, RECEIVER = Party(1, 5), Party(2, 7)
_numbers = itertools.count()


def some_bytes(count):
    """Never the same twice."""
    return next(_numbers).to_bytes(count)


def credentials(own, secret=SECRET, cluster_id="c", random_bytes=some_bytes):
    return Credentials(own.broker_id, cluster_id, secret, random_bytes, lambda: own.broker_epoch)


def opener(own=OPENER, receiver_id=2, **known):
    return Opener(credentials(own, **known), receiver_id)


def receiver(own=RECEIVER, **known):
    return Receiver(credentials(own, **known))


def sent(message):
    """A message as it arrives: the sender's object is its own."""
    return decode(type(message), 0, encode(message, 0))


def shake(a, b, known_epoch=0):
    """The whole exchange; gives what each side believes of the other."""
    challenge = sent(b.on_request(sent(a.first()), known_epoch))
    verdict = sent(b.on_request(sent(a.second(challenge)), known_epoch))
    return a.finish(verdict), b.proven


def refused(code, call, *arguments):
    with pytest.raises(OttlaError) as caught:
        call(*arguments)
    assert caught.value.code == code, caught.value
    return caught.value.message


def test_two_who_know_the_secret_prove_each_other():
    """Each side knows the other's id and epoch."""
    assert shake(opener(), receiver()) == (Party(2, 7), Party(1, 5))


def test_nothing_is_proven_before_the_proof():
    """The first of the two calls makes nobody a broker."""
    b = receiver()
    b.on_request(opener().first(), 0)
    assert b.proven is None


def test_the_bytes_that_prove_do_not_change():
    """Brokers of two releases meet during an upgrade: what is proven is fixed."""
    given = iter([b"\x11" * 32, b"\x22" * 32])
    known = {"cluster_id": "cluster", "random_bytes": lambda _: next(given)}
    a, b = opener(**known), receiver(**known)
    challenge = b.on_request(a.first(), 0)
    assert challenge.proof.hex() == RECEIVER_PROOF
    assert a.second(challenge).proof.hex() == OPENER_PROOF


RECEIVER_PROOF = "e95b8a7485f60a159c95f945d91c11000c7b3cdbb01f402c8c01f731af220608"
OPENER_PROOF = "0118ed408ed96e5b78d6804808d6fbb139836d96d38d530a1b9ad0214572a946"


def test_a_receiver_that_lacks_the_secret_is_noticed():
    """The opener sends it no proof."""
    a = opener()
    challenge = receiver(secret=bytes(32)).on_request(a.first(), 0)
    message = refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, a.second, challenge)
    assert "/cluster/secret" in message


def test_an_opener_that_lacks_the_secret_is_refused():
    """Whatever proof it makes up; and this connection gets no second try."""
    b = receiver()
    request = opener().first()
    b.on_request(request, 0)
    request.proof = bytes(32)
    refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, b.on_request, request, 0)
    assert b.proven is None
    refused(ErrorCode.INVALID_REQUEST, b.on_request, opener().first(), 0)


def test_a_recorded_handshake_proves_nothing():
    """Whoever listened in and sends the same again meets another challenge."""
    a, b = opener(), receiver()
    first = encode(a.first(), 0)
    second = encode(a.second(b.on_request(sent(a.first()), 0)), 0)
    later = receiver()
    later.on_request(decode(BrokerHandshakeRequest, 0, first), 0)
    replayed = decode(BrokerHandshakeRequest, 0, second)
    refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, later.on_request, replayed, 0)
    assert later.proven is None


def test_a_proof_cannot_be_turned_against_its_maker():
    """What the receiver proves with is no proof of an opener."""
    b = receiver()
    request = opener().first()
    request.proof = b.on_request(sent(request), 0).proof
    refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, b.on_request, request, 0)


def test_who_one_is_cannot_change_between_the_two_calls():
    """Proven is what the first call said, whatever else the second one claims."""
    a, b = opener(), receiver()
    second = sent(a.second(b.on_request(sent(a.first()), 0)))
    second.broker_id, second.broker_epoch = 3, 99
    b.on_request(second, 0)
    assert b.proven == Party(1, 5)


@pytest.mark.parametrize(
    ("changed", "code", "word"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID, "other"),
        ({"own": Party(2, 5)}, ErrorCode.DUPLICATE_BROKER_REGISTRATION, "node.id"),
        ({"receiver_id": 3}, ErrorCode.BROKER_ID_NOT_REGISTERED, "advertised.listeners"),
        ({"own": Party(1, 4)}, ErrorCode.STALE_BROKER_EPOCH, "epoch 5 has registered"),
    ],
)
def test_who_is_plainly_wrong_here_is_told_why(changed, code, word):
    """Another cluster, another's id, somebody else's address, an earlier life."""
    b = receiver()
    assert word in refused(code, b.on_request, opener(**changed).first(), 5)
    assert b.proven is None


@pytest.mark.parametrize("changed", [{"challenge": bytes(31)}, {"proof": bytes(32)}])
def test_a_handshake_begins_with_a_challenge(changed):
    """Too short a challenge, or a proof before there is anything to prove, is refused."""
    request = opener().first()
    for name, value in changed.items():
        setattr(request, name, value)
    refused(ErrorCode.INVALID_REQUEST, receiver().on_request, request, 0)


def test_an_equal_or_newer_epoch_is_welcome():
    """The image may lag behind what a broker says of itself."""
    assert shake(opener(), receiver(), known_epoch=5)[1] == Party(1, 5)
    assert shake(opener(), receiver(), known_epoch=4)[1] == Party(1, 5)


def test_a_third_call_takes_the_proof_back():
    """Only two calls are a handshake; who sends more is no broker of ours."""
    a, b = opener(), receiver()
    shake(a, b)
    refused(ErrorCode.INVALID_REQUEST, b.on_request, a.first(), 0)
    assert b.proven is None


@pytest.mark.parametrize("step", ["second", "finish"])
def test_a_refusal_is_told_with_its_words(step):
    """The opener's error has the receiver's code and message."""
    answer = BrokerHandshakeResponse(
        error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, error_message="this is cluster d"
    )
    message = refused(ErrorCode.INCONSISTENT_CLUSTER_ID, getattr(opener(), step), answer)
    assert message == "broker 2 refuses this broker: this is cluster d"


def test_another_broker_s_answer_is_refused():
    """Ports are taken over by others: the id must be the one that was looked for."""
    answer = BrokerHandshakeResponse(broker_id=3)
    refused(ErrorCode.BROKER_ID_NOT_REGISTERED, opener().second, answer)
