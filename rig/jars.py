"""Fetches jars by their Maven coordinates: with Maven if it is here, else with Spark's own Ivy.

`python -m rig.jars` fetches every set: Apache Kafka, Spark's Kafka connector, Delta for Spark,
ZooKeeper, S3Proxy, Hadoop's cluster in one process.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rig.java import NoJava, install, java
from rig.paths import RIG

KAFKA_VERSION = "4.3.1"
SPARK_VERSION = "4.2.0"
DELTA_VERSION = "4.4.0"
ZOOKEEPER_VERSION = "3.9.5"
S3PROXY_VERSION = "4.1.0"


@dataclass(frozen=True, slots=True)
class JarSet:
    """A folder of jars, how to fill it, and the variable that names another folder instead.

    A coordinate is `group:artifact:version`, or `group:artifact:version:classifier`.
    """

    name: str
    override: str
    coordinates: tuple[str, ...]
    transitive: bool

    @property
    def folder(self) -> Path:
        return Path(os.environ.get(self.override) or RIG / self.name)

    @property
    def stamp(self) -> Path:
        return self.folder / ".complete"

    def ready(self) -> bool:
        """Whether the folder is full: somebody's own folder is taken as it is."""
        if self.override in os.environ:
            return any(self.folder.glob("*.jar"))
        return self.stamp.exists() and self.stamp.read_text() == "\n".join(self.coordinates)


KAFKA = JarSet(
    name="kafka",
    override="OTTLA_KAFKA_JARS",
    coordinates=(
        f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
        f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    ),
    transitive=True,
)

# The connector's own pom names a release of the token provider that was never published.
SPARK_CONNECTOR = JarSet(
    name="spark",
    override="OTTLA_SPARK_JARS",
    coordinates=(
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    ),
    transitive=False,
)

# Its pom calls the last three "provided": by its own distribution, which is not in the repository.
ZOOKEEPER = JarSet(
    name="zookeeper",
    override="OTTLA_ZOOKEEPER_JARS",
    coordinates=(
        f"org.apache.zookeeper:zookeeper:{ZOOKEEPER_VERSION}",
        "io.dropwizard.metrics:metrics-core:4.1.12.1",
        "org.xerial.snappy:snappy-java:1.1.10.5",
        "commons-cli:commons-cli:1.5.0",
    ),
    transitive=True,
)

# Its pom leads to two versions of the annotations; only the newer one serves both of its readers.
S3PROXY = JarSet(
    name="s3proxy",
    override="OTTLA_S3PROXY_JARS",
    coordinates=(
        f"org.gaul:s3proxy:{S3PROXY_VERSION}",
        "com.fasterxml.jackson.core:jackson-annotations:2.21",
    ),
    transitive=True,
)

# Delta for Spark: reads our Delta tables back, and is what others maintain theirs with.
SPARK_DELTA = JarSet(
    name="spark-delta",
    override="OTTLA_SPARK_DELTA_JARS",
    coordinates=(
        f"io.delta:delta-spark_4.2_2.13:{DELTA_VERSION}",
        f"io.delta:delta-storage:{DELTA_VERSION}",
    ),
    transitive=False,
)

# Iceberg for Spark, whose newest runtime is for Spark 4.1: for comparisons by hand only.
SPARK_ICEBERG = JarSet(
    name="spark-iceberg",
    override="OTTLA_SPARK_ICEBERG_JARS",
    coordinates=("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
    transitive=False,
)

SETS = (KAFKA, SPARK_CONNECTOR, SPARK_DELTA, ZOOKEEPER, S3PROXY)


def why_unavailable(jars: JarSet) -> str | None:
    """Why programs of these jars cannot be started here, or None if they can."""
    try:
        java()
        class_path(jars)
    except NoJava as reason:
        return str(reason)
    return None


def class_path(jars: JarSet) -> str:
    """The `-cp` argument for a set; raises NoJava if the set is not here."""
    if not jars.ready():
        raise NoJava(f"the {jars.name} jars are not in {jars.folder}: run `make rig`")
    return str(jars.folder / "*")


def fetch(jars: JarSet) -> None:
    """Fill the folder of one set, unless it is full."""
    if jars.ready():
        return
    print(f"rig: fetching the {jars.name} jars", flush=True)
    work = RIG / f"{jars.name}.work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    copied = work / "jars"
    mvn = shutil.which("mvn")
    if mvn is None or not _by_maven(mvn, jars, work, copied):
        _by_ivy(jars, work, copied)
    shutil.rmtree(jars.folder, ignore_errors=True)
    copied.rename(jars.folder)
    jars.stamp.write_text("\n".join(jars.coordinates))
    shutil.rmtree(work)


def _modules(jars: JarSet) -> dict[tuple[str, str, str], list[str]]:
    """The modules of a set, each with the classifiers of its jars; "" is the module's own jar."""
    modules: dict[tuple[str, str, str], list[str]] = {}
    for coordinate in jars.coordinates:
        group, artifact, version, *classifier = coordinate.split(":")
        modules.setdefault((group, artifact, version), []).append("".join(classifier))
    return modules


def _classifier(name: str) -> str:
    """How a pom says it."""
    return f"<classifier>{name}</classifier>" if name else ""


def _artifacts(artifact: str, classifiers: list[str]) -> str:
    """How Ivy's own file says it. A module without classifiers needs no word of its jar."""
    if classifiers == [""]:
        return ""
    return "".join(
        f'<artifact name="{artifact}" type="jar" ext="jar"'
        + (f' m:classifier="{name}"/>' if name else "/>")
        for name in classifiers
    )


def _by_maven(mvn: str, jars: JarSet, work: Path, copied: Path) -> bool:
    """Copy with Maven and a small pom of our own; tells whether that succeeded."""
    nothing_else = (
        ""
        if jars.transitive
        else "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId>"
        "</exclusion></exclusions>"
    )
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{_classifier(classifier)}{nothing_else}</dependency>"
        for (group, artifact, version), classifiers in _modules(jars).items()
        for classifier in classifiers
    )
    pom = work / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>ottla</groupId>"
        f"<artifactId>rig-{jars.name}</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
    done = subprocess.run(
        [mvn, "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={copied}"],
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(copied, ignore_errors=True)
        print("rig: Maven failed, trying Ivy", flush=True)
    return done.returncode == 0


def _by_ivy(jars: JarSet, work: Path, copied: Path) -> None:
    """Copy with the Ivy that comes with PySpark, whose built-in resolver is Maven's."""
    import pyspark  # noqa: PLC0415  Only this route needs it, and its import is slow.

    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    transitive = str(jars.transitive).lower()
    dependencies = "".join(
        f'<dependency org="{group}" name="{artifact}" rev="{version}" '
        f'conf="default->default" transitive="{transitive}">'
        f"{_artifacts(artifact, classifiers)}</dependency>"
        for (group, artifact, version), classifiers in _modules(jars).items()
    )
    module = work / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        f'<info organisation="ottla" module="rig-{jars.name}"/>'
        f'<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    command: list[str | Path] = [
        *(java(), "-jar", ivy, "-warn", "-cache", RIG / "ivy", "-ivy", module),
        *("-types", "jar", "bundle"),
        *("-retrieve", f"{copied}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-4000:], done.stderr[-4000:], file=sys.stderr)
        raise NoJava(f"Ivy could not fetch the {jars.name} jars: its own words stand above")


def main() -> int:
    """Fetch every set, and say what is where."""
    install()
    for jars in SETS:
        fetch(jars)
        print(f"rig: {jars.name}: {len(list(jars.folder.glob('*.jar')))} jars in {jars.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
