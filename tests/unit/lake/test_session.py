"""Settings for one machine belong to a master that we chose, and to no other."""

from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.job.session import (
    LOCAL_SETTINGS,
    SparkSettings,
    builder_settings,
    path_with,
    quiet_settings,
    shown_in_processes,
    workers_python,
)

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


def test_workers_run_the_python_that_is_configured_else_this_one() -> None:
    """An explicit setting wins over the environment, that over the site's file."""
    conf, site = {"spark.pyspark.python": "python3.11"}, "spark.pyspark.python  /opt/python\n"
    environment = {"PYSPARK_PYTHON": "/env/python"}
    assert workers_python(conf, environment, site, "/here") == "python3.11"
    assert workers_python({}, environment, site, "/here") == "/env/python"
    assert workers_python({}, {}, site, "/here") == "/opt/python"
    assert workers_python({}, {}, "# spark.pyspark.python x", "/here") == "/here"


def test_bare_name_of_a_python_means_the_one_beside_this_one(tmp_path: Path) -> None:
    """Workers find theirs by the same name; a path, or a name that is not here, stays as it is."""
    here, other = tmp_path / "venv", tmp_path / "system"
    for folder in (here, other):
        folder.mkdir()
        (folder / "python3.11").touch(0o755)
    python = str(here / "python")
    assert path_with("python3.11", str(other), python) == f"{here}:{other}"
    assert path_with("python3.11", f"{here}:{other}", python) == f"{here}:{other}"
    assert path_with("python3.12", str(other), python) == str(other)
    assert path_with("./environment/bin/python3.11", str(other), python) == str(other)


@pytest.mark.parametrize("master", ["nonsense://x", "", "local[x]", "127.0.0.1:7077", "spark://"])
def test_a_word_that_is_no_master_is_refused_before_java_starts(master: str) -> None:
    """With examples of what is one."""
    with pytest.raises(OttlaError, match=r"no master of Spark: write local\[2\]"):
        builder_settings(SparkSettings(master), {}, "")


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*,4]", "local-cluster[2,1,512]", "yarn", "spark://a:1,b:2",
     "k8s://https://h:443", "sc://h:15002"],
)  # fmt: skip
def test_masters_of_spark_are_taken(master: str) -> None:
    """Of each kind."""
    assert master in builder_settings(SparkSettings(master), {}, "").values()


def test_secrets_are_not_on_the_command_line_of_java() -> None:
    """All users of a machine can read that; a driver elsewhere is not started here."""
    plain = {"spark.master": "local[2]", "spark.executorEnv.OTTLA_CONFIG": "/etc/c"}
    secret = {"spark.executorEnv.AWS_SECRET_ACCESS_KEY": "k", "spark.ssl.keyPassword": "p"}
    assert shown_in_processes(plain | secret, {}) == plain
    remote = {"spark.remote": "sc://a", **secret}
    assert shown_in_processes(remote, {}) == remote
    assert shown_in_processes(secret, {"SPARK_REMOTE": "sc://a"}) == secret
