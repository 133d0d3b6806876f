"""Which options are secrets, and what stands in their place."""

import pytest

from ottla.base.errors import OttlaError
from ottla.base.secret_options import is_secret, is_setting, resolved

SECRETS = {
    "aws_secret_access_key": "hunter2",
    "spark.ssl.keyStorePassword": "hunter2",
    "spark.kafka.clusters.x.sasl.jaas.config": "hunter2",
    "catalog.uri": "postgresql://ann:hunter2@host/lake",
    "url": "jdbc:postgresql://host/lake?user=ann&password=hunter2",
    "spark.executorEnv.KAFKA_OPTS": "-Xmx1g -Dsasl.password=hunter2",
    "spark.driver.extraJavaOptions": "-Djavax.net.ssl.keyStorePassword=hunter2 -Da=b",
    "spark.executor.defaultJavaOptions": '-Dx=y -Dssl.key.password="hunter2"',
    "jaas": 'x.PlainLoginModule required username="ann" password="hunter2";',
}
PLAIN = {
    "aws_access_key_id": "AK",
    "aws_secret_access_key": "${KEY}",
    "catalog.uri": "postgresql://ann:${KEY}@host:5432/lake",
    "url": "jdbc:postgresql://host/lake?user=ann&password=${KEY}&ssl=true",
    "spark.driver.extraJavaOptions": "-Xmx1g -Dlog4j2.configurationFile=file:///etc/log4j2.xml",
    "spark.executor.extraJavaOptions": "@/etc/spark/java.options",
    "spark.hadoop.fs.s3a.aws.credentials.provider": "org.x.Y",
    "spark.executorEnv.OTTLA_CONFIG": "/etc/ottla/client.properties",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_refused_and_not_repeated(name: str) -> None:
    """Also where it is a part of the value: a URL's password, an option of Java."""
    assert is_secret(name, SECRETS[name])
    with pytest.raises(OttlaError) as error:
        resolved({name: SECRETS[name]}, "a command", {})
    assert name in error.value.message
    assert "hunter2" not in error.value.message


@pytest.mark.parametrize("name", PLAIN)
def test_a_variable_and_what_is_no_secret_are_taken(name: str) -> None:
    """The variable's value comes in its place."""
    assert not is_secret(name, PLAIN[name])
    expected = {name: PLAIN[name].replace("${KEY}", "hunter2")}
    assert resolved({name: PLAIN[name]}, "a command", {"KEY": "hunter2"}) == expected


def test_a_variable_elsewhere_in_the_value_hides_no_secret() -> None:
    """It was taken for the variable in the secret's place."""
    url = "jdbc:postgresql://${HOST}/lake?password=hunter2"
    with pytest.raises(OttlaError, match="url is a secret"):
        resolved({"url": url}, "a command", {"HOST": "a"})


def test_options_of_java_have_no_variable_for_a_secret() -> None:
    """Its value stands on the command line of each JVM, which all users of a machine can read."""
    options = {"spark.executor.extraJavaOptions": "-Dsasl.password=${KEY} -Da=${OTHER}"}
    with pytest.raises(OttlaError) as error:
        resolved(options, "a command", {"KEY": "hunter2", "OTHER": "b"})
    assert "spark.executor.extraJavaOptions=@FILE" in error.value.message
    assert "hunter2" not in error.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("client.properties", False),
        ("/etc/ottla/stage=prod/client.properties", False),
        ("/etc/secrets/sasl.properties", False),
        ("sasl.password=hunter2", True),
        ("security.protocol: SASL_SSL", True),
        ("user=ann\nword=hunter2", True),
        ('x.PlainLoginModule required username="ann" password="hunter2";', True),
    ],
)
def test_settings_in_the_place_of_a_path_are_known(text: str, expected: bool) -> None:
    assert is_setting(text) == expected
