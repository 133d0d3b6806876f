"""Which Spark the lake runs on: a range, of which what is installed here is tried."""

import ast
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from rig.paths import ROOT

# What the lake takes from Spark. All of it is in 4.0; later names would need a look first.
NAMES_IN_4_0 = {
    "pyspark": {"SparkConf", "SparkContext", "TaskContext"},
    "pyspark.errors": {"PySparkException"},
    "pyspark.sql": {"SparkSession"},
    "pyspark.sql.datasource": {
        "DataSource",
        "DataSourceArrowWriter",
        "DataSourceReader",
        "DataSourceStreamReader",
        "DataSourceStreamWriter",
        "InputPartition",
        "WriterCommitMessage",
    },
    "pyspark.sql.types": {"StructType"},
}


def unguarded(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under a condition on Spark's version."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and "SPARK_VERSION" in ast.unparse(node.test)):
            yield node
            yield from unguarded(node)


def declared() -> dict[str, Requirement]:
    """The requirements of the extra `spark`, with those of `lake`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    parsed = map(Requirement, [*extras["lake"], *extras["spark"]])
    return {requirement.name: requirement for requirement in parsed}


@pytest.mark.parametrize("name", ["numpy", "pandas", "pyarrow", "pyspark"])
def test_what_is_installed_is_in_the_declared_range(name: str) -> None:
    """The tests with Spark try this very version."""
    assert declared()[name].specifier.contains(version(name))


@pytest.mark.parametrize(
    ("spark", "is_kept"),
    [("3.5.7", False), ("4.0.1", True), ("4.1.3", True), ("4.2.0", True), ("5.0.0", False)],
)
def test_installing_ottla_keeps_a_sites_spark(spark: str, is_kept: bool) -> None:
    assert declared()["pyspark"].specifier.contains(spark) is is_kept


def test_only_what_the_oldest_spark_has_is_imported() -> None:
    taken: dict[str, set[str]] = {}
    for path in Path(ROOT, "src/ottla/lake").rglob("*.py"):
        for node in unguarded(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"):
                taken.setdefault(node.module or "", set()).update(a.name for a in node.names)
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.startswith("pyspark"):
                        taken.setdefault(alias.name, set())
    assert taken == NAMES_IN_4_0
