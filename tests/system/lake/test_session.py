"""Which session a load makes by itself, with Spark's own programs."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rig.nodes import Node

import ottla.lake

Produce = Callable[..., None]
MakeTopic = Callable[..., str]

TELL_SETTINGS = """
from ottla.lake.job.session import session
conf = session().conf
names = ("spark.master", "spark.driver.host", "spark.app.name", "spark.ui.enabled")
print("settings:", *(conf.get(name, "unset") for name in names))
"""

KILLS_A_WORKER = """
import os, pathlib, signal, sys
import ottla.lake
from ottla.lake.job import on_spark

original, marker = on_spark._work, pathlib.Path(sys.argv[4])

def work_of(groups):
    work = original(groups)
    def once_killed(numbers):
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from work(numbers)
    return once_killed

on_spark._work = work_of
print(ottla.lake.load(sys.argv[1], sys.argv[2], bootstrap=sys.argv[3]).rows, "rows")
"""


def test_spark_submit_keeps_its_master_and_its_drivers_address(spark: Any, tmp_path: Path) -> None:
    """Executors elsewhere connect to the address that spark-submit was given."""
    del spark  # Only for its JAVA_HOME.
    program = tmp_path / "tell.py"
    program.write_text(TELL_SETTINGS)
    submit = Path(sys.executable).with_name("spark-submit")
    command = [str(submit), "--master", "local[2]", "--name", "nightly"]
    command += ["--conf", "spark.driver.host=localhost", "--conf", "spark.ui.port=0", str(program)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    assert "settings: local[2] localhost nightly unset" in done.stdout


def test_one_killed_worker_does_not_fail_a_local_load(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """The session that a load makes tries a task again."""
    del spark  # Only for its JAVA_HOME.
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 100)
    program, target, marker = tmp_path / "load.py", tmp_path / "table", tmp_path / "killed"
    program.write_text(KILLS_A_WORKER)
    command = [sys.executable, str(program), topic, str(target), node.bootstrap, str(marker)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    assert "100 rows" in done.stdout
    assert marker.exists()
    assert sum(pq.read_metadata(path).num_rows for path in ottla.lake.files(str(target))) == 100


def test_command_line_names_master_settings_and_application(
    node: Node, spark: Any, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """`--master`, `--conf` and `--name` reach Spark, by Spark's own log of the application."""
    del spark  # Only for its JAVA_HOME.
    topic = make_topic(node, partitions=1)
    produce(node, topic, 0, 10)
    events = tmp_path / "events"
    events.mkdir()
    command = [sys.executable, "-m", "ottla.cli", "lake", "load", topic]
    command += ["--to", str(tmp_path / "table"), "--bootstrap", node.bootstrap]
    command += ["--master", "local[1,3]", "--name", "nightly"]
    for setting in (
        "spark.driver.host=localhost",
        "spark.ui.enabled=false",
        "spark.eventLog.enabled=true",
        "spark.eventLog.rolling.enabled=false",
        "spark.eventLog.compress=false",
        f"spark.eventLog.dir=file://{events}",
    ):
        command += ["--conf", setting]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    (log,) = (path for path in events.iterdir() if not path.name.startswith("."))
    told = log.read_text()
    assert '"spark.master":"local[1,3]"' in told
    assert '"spark.driver.host":"localhost"' in told
    assert '"spark.app.name":"nightly"' in told


def test_setting_without_a_value_is_refused() -> None:
    command = [sys.executable, "-m", "ottla.cli", "lake", "load", "t", "--to", "x"]
    for words in ("spark.cores.max", "cores=3"):
        done = subprocess.run(
            [*command, "--conf", words], check=False, capture_output=True, text=True
        )
        assert done.returncode == 2
        assert f"'{words}' is not spark.NAME=VALUE" in done.stderr
