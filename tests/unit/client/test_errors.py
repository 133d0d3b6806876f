"""Errors say what is wrong and what to do about it."""

from ottla.base.errors import ErrorCode
from ottla.client.common.errors import check, connection_refused, refused, unknown_topic


def test_an_address_that_a_broker_advertises_is_blamed_on_its_setting() -> None:
    """Reaching the bootstrap address and then nothing is what most newcomers meet."""
    error = connection_refused("kafka", 9092, "no such host", advertised_by="localhost:9092")
    assert error.message == (
        "cannot connect to kafka:9092 (no such host); the broker at localhost:9092 advertises "
        "this address; if it cannot be reached from here, set advertised.listeners on the broker "
        "to one that can"
    )


def test_a_topic_is_suggested_only_if_it_looks_alike() -> None:
    """Otherwise the error says how to find out."""
    assert "did you mean orders?" in unknown_topic("order", ["orders", "users"]).message
    assert "list the topics" in unknown_topic("zzz", ["orders"]).message


def test_a_code_from_the_future_keeps_its_number() -> None:
    """Newer brokers have errors that this client does not know by name."""
    error = refused(9_999, "do it")
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "error 9999" in error.message


def test_no_error_is_no_exception() -> None:
    """Code 0."""
    check(0, "do it")


def test_why_tokens_are_refused_is_said() -> None:
    """Kafka's codes alone do not name the setting, nor the login that is missing."""
    assert "delegation.token.secret.key" in refused(61, "make a delegation token").message
    assert "not by a token" in refused(64, "make a delegation token").message
