"""Forty schema changes, all readers after each: `python -m tests.system.lake.by_hand_schema_year`.

Loads the steps of `schema_year` into a Delta and an Iceberg table. After each step delta-rs or
pyiceberg, Spark with the format's own library, and DuckDB with its extension read the whole table
by its folder, and DuckDB the files that count; all rows have to be those that were sent. Makes
virtual environments for DuckDB 1.5, the newest with extensions from PyPI, and for Spark 4.1, the
newest that Iceberg's runtime is for, and downloads some 500 MB for them. `--folder` keeps them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
from confluent_kafka.admin import AdminClient, NewTopic
from rig.broker import ottla
from rig.jars import SPARK_DELTA, SPARK_ICEBERG, JarSet, fetch
from rig.java import java_home
from rig.nodes import Node

from ottla.lake.tables.formats import Format
from tests.system.lake.schema_year import BY_FORMAT, STEPS, Year, by_duckdb, plain

Reader = Callable[[Path], pa.Table]
_PROGRAM = Path(__file__).with_name("schema_year_readers.py")
_DUCKDB = "1.5.5"
_EXTENSIONS = {"delta": ("delta",), "iceberg": ("avro", "iceberg")}
_KINDS: tuple[Format, ...] = ("delta", "iceberg")


def environment(folder: Path, *packages: str) -> Path:
    """Make the environment, where it is not there; its python."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    words = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*words, "pyarrow", "pandas<3", *packages], check=True)
    return python


@contextmanager
def reader(python: Path | str, engine: str, kind: str, files: Sequence[Path]) -> Iterator[Reader]:
    """A program of `schema_year_readers` that reads table after table."""
    given = ",".join(map(str, files))
    with (
        subprocess.Popen(
            [python, _PROGRAM, engine, kind, given],
            env={**os.environ, "JAVA_HOME": str(java_home())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as program,
        tempfile.TemporaryDirectory() as scratch,
    ):
        assert program.stdin is not None
        assert program.stdout is not None
        wanted, answers = program.stdin, program.stdout

        def read(target: Path) -> pa.Table:
            path = f"{scratch}/rows.arrow"
            wanted.write(f"{target}\t{path}\n")
            wanted.flush()
            if answers.readline() != "read\n":
                raise OSError(f"{engine} could not read the table")
            with pa.OSFile(path) as content:
                return ipc.open_stream(content).read_all()

        yield read
        wanted.close()


def jars(wanted: JarSet) -> list[Path]:
    """The jars of a set, which is fetched where it is not there."""
    fetch(wanted)
    return sorted(wanted.folder.glob("*.jar"))


def run(kind: Format, node: Node, folder: Path, scratch: Path) -> dict[str, int]:
    """How many steps each reader read right."""
    extensions = [f"duckdb-extension-{one}=={_DUCKDB}" for one in _EXTENSIONS[kind]]
    duck = environment(folder / "duckdb", f"duckdb=={_DUCKDB}", *extensions)
    spark = sys.executable
    if kind == "iceberg":
        spark = str(environment(folder / "spark-4.1", "pyspark==4.1.*"))
    found = [
        next((folder / "duckdb").glob(f"lib/*/site-packages/**/{one}.duckdb_extension"))
        for one in _EXTENSIONS[kind]
    ]
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(kind, 1, 1)])[kind].result(90)
    year = Year(node, kind, scratch / kind)
    with ExitStack() as stack:
        spark_jars = jars(SPARK_DELTA if kind == "delta" else SPARK_ICEBERG)
        readers: dict[str, Reader] = {
            {"delta": "delta-rs", "iceberg": "pyiceberg"}[kind]: BY_FORMAT[kind],
            "Spark": stack.enter_context(reader(spark, "spark", kind, spark_jars)),
            f"DuckDB's {kind}": stack.enter_context(reader(duck, "duckdb", kind, found)),
            "DuckDB, files that count": by_duckdb,
        }
        right = dict.fromkeys([*readers, "verify"], 0)
        for number, step in enumerate(STEPS, 1):
            year.take(step, format=kind)
            for name, read in readers.items():
                right[name] += plain(read(year.target), year.names) == year.rows
            right["verify"] += not year.problems()
            print(kind, number, step.what, right, flush=True)
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=_KINDS)
    parser.add_argument("--folder", type=Path, help="keep the environments here")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="schema-year-") as scratch, ottla() as node:
        folder = words.folder or Path(scratch) / "environments"
        for kind in words.kinds:
            found = run(kind, node, folder, Path(scratch))
            for name, count in found.items():
                print(f"| {kind} | {name} | {count} of {len(STEPS)} |")


if __name__ == "__main__":
    main()
