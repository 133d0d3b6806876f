"""A pipeline's file means what it says, and each wrong word is named."""

from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.edges.pipeline_file import Pipeline, parse, read

LEAST = '[source]\ntopic = "flights"\n[target]\ntable = "/lake/flights"\n'


def test_what_is_not_said_has_the_defaults_of_a_load() -> None:
    """Source and target are all that is needed."""
    assert parse(LEAST, "p") == Pipeline(
        "flights", "/lake/flights", {"bootstrap": "localhost:9092"}
    )


def test_every_key_has_its_place() -> None:
    """All sections, once."""
    text = """
        [source]
        topic = "flights"
        bootstrap = "one:9092,two:9092"
        from = "earliest"
        until = "@1704067200000"
        group = "lake:flights"
        accept_loss = true
        skip_unreadable = true
        on_bad_timestamp = "null"
        on_null_key = "skip"

        [target]
        table = "s3://lake/flights"
        format = "delta"
        kind = "history"
        options = { aws_region = "eu-central-1" }

        [schedule]
        every = "10s"
        max_bytes = "256MB"

        [report]
        metrics = "/var/lib/metrics/flights.prom"

        [spark]
        master = "local[2]"
        name = "flights"
        conf = { "spark.driver.memory" = "2g" }

        [decode]
        value = "json"
        """
    assert parse(text, "p") == Pipeline(
        topic="flights",
        table="s3://lake/flights",
        options={
            "bootstrap": "one:9092,two:9092",
            "start": "earliest",
            "end": "@1704067200000",
            "group": "lake:flights",
            "accept_loss": True,
            "skip_unreadable": True,
            "on_bad_timestamp": "null",
            "on_null_key": "skip",
            "format": "delta",
            "store_options": {"aws_region": "eu-central-1"},
            "every": 10_000,
            "max_bytes": 256_000_000,
            "master": "local[2]",
            "name": "flights",
            "conf": {"spark.driver.memory": "2g"},
            "decode": {"value": "json"},
        },
        kind="history",
        metrics="/var/lib/metrics/flights.prom",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no topic in [source]"),
        ('[source]\ntopic = "t"\n', "has no table in [target]"),
        ("[source\n", "is no TOML"),
        (LEAST + "[sorce]\n", "a section [sorce], which is not known; did you mean source?"),
        ('topic = "t"\n' + LEAST, "a section [topic], which is not known"),
        ("source = 1\n", "has source outside of a section: write [source]"),
        (LEAST + "acept_loss = true\n", "a key acept_loss in [target], which is not known"),
        (
            LEAST.replace("[target]", "acept_loss = true\n[target]"),
            "a key acept_loss in [source], which is not known; did you mean accept_loss?",
        ),
        (
            LEAST.replace("[target]", 'accept_loss = "yes"\n[target]'),
            "has accept_loss = 'yes' in [source], which is not true or false",
        ),
        (LEAST + 'format = "orc"\n', "has format = 'orc' in [target]; it is one of parquet, delta"),
        (LEAST + "options = { a = 1 }\n", "which is not a table of strings"),
        (LEAST + '[schedule]\nevery = "often"\n', "which is not a time such as"),
        (LEAST + '[schedule]\nevery = "0s"\n', "which is not a time such as"),
        (LEAST + '[schedule]\nmax_bytes = "many"\n', "which is not a size such as"),
    ],
)
def test_a_wrong_word_is_named(text: str, said: str) -> None:
    """With the file, the section and what would be right."""
    with pytest.raises(OttlaError) as error:
        parse(text, "flights.toml")
    assert error.value.message.startswith("the pipeline flights.toml ")
    assert said in error.value.message


def test_a_span_of_zero_is_a_span() -> None:
    """As in Python and on the command line; only an interval has to be above zero."""
    assert parse(LEAST + 'allowed_lateness = "0s"\n', "p").options["allowed_lateness"] == 0


CLIENTS = 'sasl.jaas.config = "hunter2"\n[target]'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LEAST.replace("[target]", CLIENTS), 'which config = "client.properties" names'),
        (
            LEAST + 'options = { aws_secret_access_key = "hunter2" }\n',
            "aws_secret_access_key is a secret, and the pipeline flights.toml is no place for it: "
            "set an environment variable, and write aws_secret_access_key=${VARIABLE}",
        ),
        (LEAST + 'options = { catalog.uri = "hunter2" }\n', "which is not a table of strings"),
        (
            LEAST + 'options = { "catalog.uri" = "postgresql://ann:hunter2@host/lake" }\n',
            "catalog.uri is a secret",
        ),
        (
            LEAST + '[spark.conf]\n"spark.hadoop.fs.s3a.secret.key" = "hunter2"\n',
            "spark.hadoop.fs.s3a.secret.key is a secret",
        ),
        (
            LEAST + 'options = { aws_secret_access_key = "${NOWHERE}" }\n',
            "aws_secret_access_key in the pipeline flights.toml names the environment variable "
            "NOWHERE, which is not set",
        ),
        (
            LEAST.replace("[target]", 'config = "sasl.password=hunter2"\n[target]'),
            "has settings of Kafka's clients as config in [source]",
        ),
        (
            LEAST.replace("[target]", 'config = """\nuser=a\nword: hunter2"""\n[target]'),
            "has settings of Kafka's clients as config in [source]",
        ),
        (
            LEAST.replace("[target]", 'bootstrap = "sasl://ann:hunter2@host:9"\n[target]'),
            "has a secret in bootstrap in [source]",
        ),
        (
            LEAST + '[spark.conf]\n"spark.driver.extraJavaOptions" = "-Dsasl.password=hunter2"\n',
            "spark.driver.extraJavaOptions in the pipeline flights.toml has a secret",
        ),
    ],
)
def test_a_pipeline_has_no_secret(text: str, said: str) -> None:
    """It is refused with what to do, and no message repeats it."""
    with pytest.raises(OttlaError) as error:
        parse(text, "flights.toml")
    assert said in error.value.message
    assert "hunter2" not in error.value.message


def test_a_pipeline_names_variables_and_the_settings_of_clients(tmp_path: Path) -> None:
    """The file of settings stands beside it; what is no secret may stand in it."""
    text = (
        LEAST.replace("[target]", 'config = "${STAGE}.properties"\n[target]')
        + 'options = { aws_secret_access_key = "${KEY}", aws_access_key_id = "AK" }\n'
        '[spark.conf]\n"spark.hadoop.fs.s3a.aws.credentials.provider" = "org.x.Y"\n'
    )
    found = parse(text, "p", environment={"KEY": "hunter2", "STAGE": "prod"})
    assert found.store_options == {"aws_secret_access_key": "hunter2", "aws_access_key_id": "AK"}
    assert found.options["conf"] == {"spark.hadoop.fs.s3a.aws.credentials.provider": "org.x.Y"}
    assert "hunter2" not in repr(found)
    path = tmp_path / "flights.toml"
    path.write_text(LEAST.replace("[target]", 'config = "client.properties"\n[target]'))
    assert read(str(path)).config == str(tmp_path / "client.properties")


def test_times_and_sizes() -> None:
    """A file takes the same words as the command line."""
    found = parse(f'{LEAST}\n[schedule]\nevery = "5m"\nmax_bytes = "2Gi"\n', "p")
    assert (found.options["every"], found.options["max_bytes"]) == (300_000, 2 << 30)


def test_relative_paths_are_below_the_folder_of_the_file(tmp_path: Path) -> None:
    """So that cron and a shell elsewhere load into one table; URLs and absolute paths stay."""
    path = tmp_path / "flights.toml"
    path.write_text(
        '[source]\ntopic = "t"\n[target]\ntable = "lake/flights"\n'
        '[report]\nmetrics = "numbers.prom"\n'
    )
    found = read(str(path))
    assert found.table == str(tmp_path / "lake" / "flights")
    assert found.metrics == str(tmp_path / "numbers.prom")
    path.write_text('[source]\ntopic = "t"\n[target]\ntable = "s3://lake/flights"\n')
    assert read(str(path)).table == "s3://lake/flights"
