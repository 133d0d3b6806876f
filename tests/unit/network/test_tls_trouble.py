"""Failed handshakes in words: what was seen, and a remedy."""

import ssl

import pytest

from ottla.network.tls.trouble import of_client, of_server


def error(reason):
    made = ssl.SSLError(1, reason)
    made.reason = reason
    return made


def unverified(why):
    made = ssl.SSLCertVerificationError(1, why)
    made.verify_message = why
    return made


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (error("WRONG_VERSION_NUMBER"), "security.protocol=SSL"),
        (error("HTTP_REQUEST"), "HTTP"),
        (error("UNSUPPORTED_PROTOCOL"), "ssl.enabled.protocols"),
        (error("NO_SHARED_CIPHER"), "ssl.cipher.suites"),
        (error("TLSV1_ALERT_UNKNOWN_CA"), "ssl.truststore.location"),
        (error("SSLV3_ALERT_CERTIFICATE_EXPIRED"), "does not accept this broker's certificate"),
        (error("TLSV1_ALERT_INTERNAL_ERROR"), "its own log"),
        (error("SOMETHING_NEW"), "something new"),
        (unverified("certificate has expired"), "renew the client's certificate"),
        (unverified("EE certificate key too weak"), "2048 bits"),
        (unverified("CA signature digest algorithm too weak"), "SHA-256"),
        (TimeoutError(), "not done in time"),
    ],
)
def test_a_broker_says_why_a_clients_handshake_failed(given, words):
    """And what to change, in which place."""
    trouble = of_client(given)
    assert trouble is not None
    assert words in trouble.sentence


@pytest.mark.parametrize("given", [ConnectionResetError(), ssl.SSLEOFError(8, "EOF")])
def test_a_client_that_only_goes_away_is_no_trouble(given):
    """Checks of ports do so all the time."""
    assert of_client(given) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (unverified("Hostname mismatch, certificate is not valid for 'b'."), "is not for 'b'"),
        (unverified("IP address mismatch, certificate is not valid for 'b'."), "is not for 'b'"),
        (unverified("certificate has expired"), "clocks"),
        (unverified("self-signed certificate"), "ssl.truststore.location"),
        (unverified("unsuitable certificate purpose"), "serverAuth"),
        (error("WRONG_VERSION_NUMBER"), "security.protocol=PLAINTEXT"),
        (error("SSLV3_ALERT_HANDSHAKE_FAILURE"), "the broker's log"),
        (ConnectionResetError(104, "reset"), "if the port does not speak TLS, set security.prot"),
        (ConnectionAbortedError(), "security.protocol=PLAINTEXT or SASL_PLAINTEXT"),
        (ssl.SSLEOFError(8, "EOF"), "if the port does not speak TLS"),
    ],
)
def test_a_client_says_why_its_handshake_with_a_broker_failed(given, words):
    """Certificates that are expired, unknown or for another host; a port without TLS."""
    assert words in of_server(given, "b")
