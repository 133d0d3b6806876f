"""A standalone Spark cluster whose workers have hosts of their own: loads, follows, verifies.

A host is a network namespace; where none can be made, an address of loopback. The workers' Python
has no packages. Where tasks are not meant to use packages that Spark ships, they run the Python of
this test, which is at the same path on the workers.
"""

import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from importlib.metadata import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rig import s3, spark_cluster

import ottla.lake
from ottla.lake import run_here
from tests.system.lake.cluster_runs import (
    BUCKET,
    PATIENCE_S,
    RECORD_BYTES,
    WORKERS,
    Site,
    send,
    site,
)
from tests.system.lake.test_follow_processes import Following, produced

MakeTopic = Callable[..., str]
# Two tasks: small ranges share one of 16 MiB.
RECORDS, PARTITIONS = 32_000, 4
WITHOUT_OURS = ("ottla", "pyarrow", "numpy", "pandas")
# What `pip install --target` of the how-to page brings, as far as this load imports it.
PACKAGES = (
    "arro3-core", "certifi", "charset-normalizer", "click", "cramjam", "crc32c", "deltalake",
    "deprecated", "google-re2", "idna", "librt", "mypy-extensions", "numpy", "obstore", "orjson",
    "pandas", "pyarrow", "python-dateutil", "pytz", "requests", "six", "tenacity",
    "typing-extensions", "tzdata", "urllib3", "uvloop", "wrapt",
)  # fmt: skip
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"

LOADS_AND_TELLS = """
import os, sys
import pyarrow as pa
import ottla.lake
from ottla.lake.job.session import SparkSettings, session

topic, target, bootstrap, master, *conf = sys.argv[1:]
spark = session(SparkSettings(master, "shipped", dict(one.split("=", 1) for one in conf)))
done = ottla.lake.load(
    topic, target, bootstrap=bootstrap, format="delta", spark_session=spark
)

def tell(batches):
    import ottla.record.reader, pyarrow, pyspark
    for batch in batches:
        ours = (ottla.__file__, pyarrow.__file__, ottla.record.reader.__file__)
        names = (*ours, pyspark.__file__, sys.prefix)
        yield pa.RecordBatch.from_pydict({"told": [" ".join(names)]})

frame = spark.range(0, 1, 1, 1).mapInArrow(tell, "told string")
ottla.lake.register(spark)
reader = spark.read.format("ottla").option("kafka.bootstrap.servers", bootstrap)
reader = reader.option("subscribe", topic)
print(done.rows, reader.load().count(), frame.collect()[0].told)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if reason := spark_cluster.available() or s3.available():
        pytest.skip(reason)
    with site(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture
def two_workers(cluster: Site) -> Site:
    """Those that earlier tests killed are back."""
    cluster.cluster.heal()
    return cluster


@pytest.fixture(scope="module")
def filled(cluster: Site) -> str:
    """A topic that is more than one task."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.node.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("filled", PARTITIONS, 1)])["filled"].result(90)
    send(cluster.node, "filled", RECORDS)
    assert RECORDS * RECORD_BYTES > 16 << 20
    return "filled"


def test_a_worker_that_is_killed_in_mid_load_loses_and_doubles_nothing(
    two_workers: Site, filled: str
) -> None:
    """The other worker does its tasks; verify, DuckDB and pyarrow find every record once."""
    cluster, target = two_workers.cluster, f"s3://{BUCKET}/load"
    load = two_workers.start("load", filled, "--to", target, "--name", "nightly")
    killed = two_workers.kill_a_busy_worker(lambda: load.poll() is None)
    in_mid_load = load.poll() is None
    told, _ = load.communicate(timeout=PATIENCE_S)

    assert load.returncode == 0, told[-4000:]
    assert in_mid_load
    two_workers.require_each_once(filled, target, RECORDS)
    begun = cluster.tasks("nightly", "Running task")
    finished = cluster.tasks("nightly", "Finished task")
    assert begun[killed] > finished[killed]
    # By the name that was given, and by way of the driver's address that was given.
    assert cluster.drivers() == {two_workers.here}


def test_an_executor_that_is_killed_in_mid_load_loses_and_doubles_nothing(
    two_workers: Site, filled: str, tmp_path: Path
) -> None:
    """Its worker goes on, with another executor."""
    cluster, target = two_workers.cluster, str(tmp_path / "table")
    load = two_workers.start("load", filled, "--to", target, "--name", "hourly")
    killed = two_workers.kill_a_busy_executor(lambda: load.poll() is None)
    in_mid_load = load.poll() is None
    told, _ = load.communicate(timeout=PATIENCE_S)

    assert load.returncode == 0, told[-4000:]
    assert in_mid_load
    two_workers.require_each_once(filled, target, RECORDS)
    begun = cluster.tasks("hourly", "Running task")
    assert begun[killed] > cluster.tasks("hourly", "Finished task")[killed]


def test_an_executor_and_a_worker_that_are_killed_under_a_follow_lose_and_double_nothing(
    two_workers: Site, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Commits go on with the others, and the follow ends after one when it is asked to."""
    node = two_workers.node
    target = str(tmp_path / "table")
    topic = make_topic(node, partitions=3)
    follow = Following(node, topic, target, [*two_workers.options(), "--format", "iceberg"])
    try:
        with produced(node, topic, b"%010d") as count:
            follow.wait_for(lambda commits: len(commits) >= 2)
            two_workers.kill_a_busy_executor(lambda: True)
            had = len(follow.commits)
            follow.wait_for(lambda commits: len(commits) >= had + 2)
            two_workers.kill_a_busy_worker(lambda: True)
            had = len(follow.commits)
            follow.wait_for(lambda commits: len(commits) >= had + 2)
        follow.wait_for(lambda commits: sum(commits[-1]["positions"].values()) == count[0])
    finally:
        code = follow.end(signal.SIGTERM)

    assert code == 0
    two_workers.require_each_once(topic, target, count[0])


def test_verify_finds_a_damage_with_tasks_on_both_workers(
    two_workers: Site, filled: str, tmp_path: Path
) -> None:
    """One value of one row, with the digests of file and manifest left alone."""
    target = tmp_path / "table"
    ottla.lake.load(filled, str(target), bootstrap=two_workers.bootstrap, runner=run_here)
    damaged = max(ottla.lake.files(str(target)))
    rows = pq.read_table(damaged)
    at = rows.schema.get_field_index("value")
    values, field = rows["value"].to_pylist(), rows.schema.field("value")
    values[3] = b"x" + values[3][1:]
    pq.write_table(rows.set_column(at, field, pa.array(values, field.type)), damaged)

    # The first task waits for both executors: one that registers late would get none.
    both = [f"spark.cores.max={len(WORKERS)}", "spark.scheduler.minRegisteredResourcesRatio=1.0"]
    both += [f"spark.scheduler.maxRegisteredResourcesWaitingTime={PATIENCE_S}s"]
    words = ["verify", str(target), "--spark", "--name", "verifies", "-o", "json"]
    words += [f"--conf={setting}" for setting in both]
    code, told = two_workers.run(*words)

    assert code == 3, told[-4000:]
    report = json.loads(told[told.index("{") :])
    assert any("altered in the lake: 3" in problem for problem in report["problems"]), told
    finished = two_workers.cluster.tasks("verifies", "Finished task")
    assert {host for host, count in finished.items() if count} == set(WORKERS)


def test_an_archive_is_all_that_a_worker_needs(
    two_workers: Site, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A folder of packages, with compiled modules: a load, the data source, the proof."""
    for name in WITHOUT_OURS:
        tried = subprocess.run(
            [two_workers.bare_python, "-c", f"import {name}"], check=False, capture_output=True
        )
        assert tried.returncode != 0
    archive = tmp_path / "packages.tar.gz"
    _pack(archive)

    program, target = tmp_path / "loads_and_tells.py", str(tmp_path / "table")
    program.write_text(LOADS_AND_TELLS)
    _, url, *settings = two_workers.cluster.options()
    conf = [one.removeprefix("--conf=") for one in settings]
    conf += [f"spark.archives={archive}#packages"]
    conf += ["spark.executorEnv.PYTHONPATH=packages"]
    conf += [f"spark.pyspark.python={PYTHON}", "spark.cores.max=1"]
    topic = make_topic(two_workers.node, partitions=2)
    send(two_workers.node, topic, 500)
    environment = {k: v for k, v in os.environ.items() if k != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [sys.executable, program, topic, target, two_workers.bootstrap, url, *conf],
        env=environment | two_workers.environment,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    loaded, read, *places, of_spark, prefix = done.stdout.split()
    assert (loaded, read) == ("500", "500")
    assert all("/packages/" in place for place in places), places
    assert "/packages/" not in of_spark
    assert Path(prefix) == two_workers.bare_python.parent.parent
    import ottla.record.reader

    # Compiled, where it is compiled here.
    assert Path(places[-1]).suffix == Path(ottla.record.reader.__file__).suffix
    two_workers.require_each_once(topic, target, 500)


def _pack(archive: Path) -> None:
    """Pack ottla as it is here, and the installed packages that its tasks need."""
    home = Path(ottla.__file__).parent.parent
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        for source in (home / "ottla", home / "pyspark_ottla", *home.glob("*__mypyc*")):
            packed.add(source, source.relative_to(home))
        for name in PACKAGES:
            for file in files(name) or ():
                if ".." not in file.parts and (source := Path(file.locate())).is_file():
                    packed.add(source, str(file))


def test_a_worker_with_a_disk_of_its_own_at_the_target_fails_the_load(
    two_workers: Site, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """It writes its file there; the driver looks for it, commits nothing and says what to do."""
    for name in WORKERS:
        two_workers.cluster.kill(name)
    target = tmp_path / "table"
    two_workers.cluster.start_worker(WORKERS[0], private=(tmp_path, target / "data"))
    topic = make_topic(two_workers.node, partitions=1)
    send(two_workers.node, topic, 100)
    code, told = two_workers.run("load", topic, "--to", str(target))
    two_workers.cluster.kill(WORKERS[0])

    assert code == 1, told[-4000:]
    assert "is missing" in told
    assert "the target must be one folder that the driver and all workers share" in told
    assert not list(target.glob("_ottla/manifests/*"))
