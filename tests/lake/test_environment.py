"""A load on a cluster whose workers have Python and nothing of ours: the packages are shipped."""

import json
import os
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rig.nodes import Node
from spark_daemon import free_port, started

Produce = Callable[..., None]
MakeTopic = Callable[..., str]

WITHOUT_OURS = ("ottla", "pyarrow", "numpy", "pandas")


@pytest.fixture
def master(spark: Any, tmp_path: Path) -> Iterator[str]:
    """A standalone cluster of one worker, whose Python is a bare one."""
    del spark  # Only for its JAVA_HOME.
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True, with_pip=False)
    for name in WITHOUT_OURS:
        tried = subprocess.run(
            [bare / "bin" / "python", "-c", f"import {name}"], check=False, capture_output=True
        )
        assert tried.returncode != 0
    port, worker_port = free_port(), free_port()
    deploy, here = "org.apache.spark.deploy", ["--host", "127.0.0.1"]
    url = f"spark://127.0.0.1:{port}"
    leading = [f"{deploy}.master.Master", *here, "--port", str(port), "--webui-port", "0"]
    working = [f"{deploy}.worker.Worker", *here, "--port", str(worker_port), "--webui-port", "0"]
    working += ["--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "work"), url]
    path = f"{bare / 'bin'}:{os.environ['PATH']}"
    with (
        started(tmp_path, "master", leading, port),
        started(tmp_path, "worker", working, worker_port, PATH=path),
    ):
        yield url


def test_archive_is_all_that_a_worker_needs(
    node: Node, master: str, make_topic: MakeTopic, produce: Produce, tmp_path: Path
) -> None:
    """`ottla lake environment`, then `ottla lake run` with what it printed."""
    topic = make_topic(node, partitions=2)
    produce(node, topic, 0, 500)
    archive = tmp_path / "env.tar.gz"
    command = [sys.executable, "-m", "ottla.cli", "lake"]
    environment = {k: v for k, v in os.environ.items() if k != "PYSPARK_PYTHON"}
    packed = subprocess.run(
        [*command, "environment", "--to", archive], check=False, capture_output=True, text=True
    )
    assert packed.returncode == 0, packed.stderr
    assert f"--archives {archive}#environment" in packed.stdout
    with tarfile.open(archive) as content:
        names = {name.split("/")[1] for name in content.getnames() if name.startswith("lib/")}
    assert "pyarrow" in names
    assert "pyspark" not in names

    path = tmp_path / "pipeline.toml"
    path.write_text(f"""
        [source]
        topic = "{topic}"
        bootstrap = "{node.bootstrap}"
        [target]
        table = "{tmp_path / "table"}"
        [spark.conf]
        "spark.archives" = "{archive}#environment"
        "spark.pyspark.python" = "./environment/bin/python"
        "spark.driver.host" = "127.0.0.1"
        "spark.executor.memory" = "512m"
        "spark.ui.enabled" = "false"
        """)
    words = [*command, "run", str(path), "--master", master, "-o", "json"]
    done = subprocess.run(words, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["rows"] == 500
