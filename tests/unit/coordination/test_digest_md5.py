"""The login by DIGEST-MD5, by the example of RFC 2831 (4) and by what a server may do wrong."""

import pytest

from ottla.coordination.zookeeper.digest_md5 import DigestMd5, DigestRefused

CHALLENGE = (
    b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,'
    b"charset=utf-8"
)
LAST = b"rspauth=ea40f60335c427b5527b84dbabcdfffd"


def login():
    return DigestMd5("chris", "secret", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")


def test_the_example_of_the_rfc_is_answered_as_there():
    """Both proofs: the client's, and the one by which the server shows that it knows the user."""
    one = login()
    assert not one.is_proven(LAST)
    answer = one.answer(CHALLENGE)
    assert b"response=d388dad90d4bbd760a152321f2143af7," in answer
    assert b'username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh"' in answer
    assert one.is_proven(LAST)


@pytest.mark.parametrize("last", [b"", b"rspauth=", b"rspauth=ea40f60335c427b5527b84dbabcdfffe"])
def test_a_server_that_does_not_know_the_password_is_not_believed(last):
    """Whatever it sends in the place of its proof."""
    one = login()
    one.answer(CHALLENGE)
    assert not one.is_proven(last)


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\xff\x00",
        CHALLENGE.replace(b"md5-sess", b"md4"),
        CHALLENGE.replace(b'"auth"', b'"x"'),
    ],
)
def test_another_challenge_is_refused(challenge):
    """No answer is made of what is not DIGEST-MD5 with qop=auth."""
    with pytest.raises(DigestRefused):
        login().answer(challenge)


def test_quotes_in_a_name_stay_inside_their_quotes():
    """A user's name cannot add directives."""
    answer = DigestMd5('a"b\\c', "p", "n").answer(CHALLENGE)
    assert b'username="a\\"b\\\\c",realm=' in answer
