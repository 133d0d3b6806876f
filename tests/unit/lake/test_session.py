"""Settings for one machine belong to a master that we chose, and to no other."""

import pytest

from ottla.lake.session import LOCAL_SETTINGS, SparkSettings, builder_settings, quiet_settings

HERE = {"spark.app.name": "ottla lake", "spark.master": "local[*,4]", **LOCAL_SETTINGS}
NAMED = {"spark.app.name": "ottla lake"}


def test_nothing_said_means_this_machine_with_retries() -> None:
    """One killed worker is no reason to fail a load, so tasks are tried four times."""
    assert builder_settings(SparkSettings(), {}, "") == HERE
    assert HERE["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("environment", "defaults", "expected"),
    [
        # What spark-submit starts finds a gateway to the JVM that holds the settings.
        ({"PYSPARK_GATEWAY_PORT": "4040"}, "", {}),
        ({"PYSPARK_SUBMIT_ARGS": "--master spark://a:7077 pyspark-shell"}, "", NAMED),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.master=yarn pyspark-shell"}, "", NAMED),
        ({"SPARK_REMOTE": "sc://a"}, "", NAMED),
        ({"MASTER": "spark://a:7077"}, "", NAMED),
        ({}, "spark.eventLog.enabled true\nspark.master  spark://a:7077\n", NAMED),
        ({}, "spark.master=yarn", NAMED),
        ({}, "# spark.master  spark://a:7077\nspark.masterful yes\n", HERE),
        ({"PYSPARK_SUBMIT_ARGS": "--jars a.jar pyspark-shell"}, "", HERE),
    ],
)
def test_master_said_elsewhere_gets_nothing_of_ours(
    environment: dict[str, str], defaults: str, expected: dict[str, str]
) -> None:
    """Executors elsewhere could not connect to 127.0.0.1."""
    assert builder_settings(SparkSettings(), environment, defaults) == expected


def test_master_and_settings_of_the_caller_are_taken_as_they_are() -> None:
    wanted = SparkSettings("spark://a:7077", "nightly", {"spark.driver.host": "10.0.0.1"})
    assert builder_settings(wanted, {}, "") == {
        "spark.app.name": "nightly",
        "spark.master": "spark://a:7077",
        "spark.driver.host": "10.0.0.1",
    }


def test_connect_url_is_a_remote() -> None:
    assert builder_settings(SparkSettings("sc://a:15002"), {}, "") == {
        "spark.remote": "sc://a:15002",
        **NAMED,
    }


def test_settings_of_the_caller_win_over_ours() -> None:
    wanted = SparkSettings(conf={"spark.driver.host": "10.0.0.1"})
    assert builder_settings(wanted, {}, "") == {**HERE, "spark.driver.host": "10.0.0.1"}


def test_master_among_the_settings_is_a_master() -> None:
    wanted = SparkSettings(conf={"spark.master": "yarn"})
    assert builder_settings(wanted, {}, "") == {**NAMED, "spark.master": "yarn"}


def test_driver_that_we_start_logs_errors_only() -> None:
    """What a load does, the command says."""
    quiet = quiet_settings(HERE, {}, "")
    assert quiet["spark.log.level"] == "ERROR"
    assert quiet["spark.driver.extraJavaOptions"].startswith("-Dlog4j2.configurationFile=file:///")


@pytest.mark.parametrize(
    ("settings", "environment", "defaults"),
    [
        ({"spark.remote": "sc://a"}, {}, ""),
        ({}, {"SPARK_REMOTE": "sc://a"}, ""),
        ({}, {"PYSPARK_GATEWAY_PORT": "4040"}, ""),
        ({"spark.log.level": "INFO"}, {}, ""),
        ({"spark.driver.extraJavaOptions": "-Dlog4j.configuration=x"}, {}, ""),
        ({}, {}, "spark.log.level WARN"),
    ],
)
def test_driver_that_runs_or_is_configured_keeps_its_log(
    settings: dict[str, str], environment: dict[str, str], defaults: str
) -> None:
    assert quiet_settings(settings, environment, defaults) == {}


def test_other_options_of_the_driver_stay() -> None:
    """Only the level is set then."""
    given = {"spark.driver.extraJavaOptions": "-Xmx2g"}
    assert quiet_settings(given, {}, "") == {"spark.log.level": "ERROR"}
