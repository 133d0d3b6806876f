"""Mistakes in settings of security that are valid settings: the log says what they do."""

import pytest

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.doubts import doubts
from ottla.base.settings.listeners import inter_broker_address

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"super.users": "User:a", "authorizer.class.name": ""}, "every client may do everything"),
        ({"super.users": "user:admin"}, "write User:admin"),
        ({"super.users": "User:a, User:b"}, "semicolons between them"),
        ({"super.users": ""}, "no client may do anything"),
        ({"listener.name.clients.ssl.client.auth": "required"}, "listeners has plaintext"),
        ({"listener.name.PLAINTEXT.ssl.client.auth": "required"}, "small letters"),
        ({"principal.builder.class": "org.example.Mine"}, "no class of others is loaded"),
    ],
)
def test_a_setting_that_protects_nothing_is_said(given, words):
    """Each of them starts a Kafka without a word."""
    (doubt,) = doubts(BrokerSettings({**AUTHORIZER, **given}), has_acls=False)
    assert words in doubt


@pytest.mark.parametrize(
    ("given", "has_acls"),
    [
        ({}, False),
        ({"super.users": "User:CN=a,OU=b;User:admin;"}, False),
        ({"super.users": ""}, True),
        ({"super.users": "", "allow.everyone.if.no.acl.found": "true"}, False),
        ({"super.users": "", "authorizer.class.name": ""}, False),
        ({"listener.name.plaintext.ssl.client.auth": "required"}, False),
        ({"listener.name.c.ssl.client.auth": "none", "controller.listener.names": "C"}, False),
    ],
)
def test_usual_settings_are_beyond_doubt(given, has_acls):
    """Distinguished names have commas."""
    assert doubts(BrokerSettings({**AUTHORIZER, **given}), has_acls=has_acls) == []


@pytest.mark.parametrize(
    "name", ["sasl.enabled.mechanism", "plain.sasl.jaas.confg", "ssl.client.aut"]
)
def test_a_misspelled_setting_of_a_listener_is_refused(name):
    """It would leave the listener with the setting of all, which may be none."""
    with pytest.raises(OttlaError, match="did you mean"):
        BrokerSettings({f"listener.name.plaintext.{name}": "x"})


def test_the_listener_of_brokers_is_named_once():
    """As in Kafka, which starts with neither where both are set."""
    both = {
        "inter.broker.listener.name": "PLAINTEXT",
        "security.inter.broker.protocol": "PLAINTEXT",
    }
    with pytest.raises(OttlaError, match=r"Only one of inter\.broker\.listener\.name and"):
        inter_broker_address(BrokerSettings(both))
