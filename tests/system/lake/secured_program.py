"""A Spark application for `test_secured`: it loads, follows, reads and sinks on a secured broker.

What Spark shows of it is written into the folder that its event log is in.
"""

import json
import os
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import ottla.lake
from ottla.lake.job.session import SparkSettings, session


def main() -> None:
    said = json.loads(sys.argv[1])
    folder, bootstrap, topic = Path(said["folder"]), said["bootstrap"], said["topic"]
    spark = session(
        SparkSettings(
            "local[2]",
            conf={
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": (folder / "events").as_uri(),
                "spark.eventLog.compress": "false",
                "spark.ui.enabled": "true",
                "spark.ui.port": "0",
                "spark.ui.showConsoleProgress": "false",
                "spark.sql.shuffle.partitions": "2",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.host": "127.0.0.1",
                "spark.files": said["sent"],
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                **said["conf"],
            },
        )
    )
    (folder / "processes").write_text(commands_of_java())
    kept = [spark.sparkContext.getConf().get(name) == value for name, value in said["conf"].items()]
    # Only now: the JVM and its workers have not inherited it.
    os.environ["OTTLA_CONFIG"] = said["config"]
    # It is found by its name, among the files that Spark has sent.
    os.remove(said["sent"])
    tables = folder / "tables"
    loaded = ottla.lake.load(topic, str(tables / "load"), bootstrap=bootstrap)
    ottla.lake.follow(topic, str(tables / "follow"), bootstrap=bootstrap, once=True)
    proof = ottla.lake.verify(str(tables / "follow"), bootstrap=bootstrap)
    frame = ottla.lake.topic(topic, bootstrap=bootstrap).to_spark(spark)
    sent = reading(spark, said, config=os.path.basename(said["sent"]))
    own = reading(spark, said, **said["options"])
    counts = [loaded.rows, proof.rows, frame.count(), sent.count(), own.count()]
    sink(spark, said, own)
    plans = [frame, sent, own]
    (folder / "plans").write_text("\n".join(map(explained, plans)))
    # But for the secret that it was given.
    settings = dict(spark.sparkContext.getConf().getAll())
    others = {name: value for name, value in settings.items() if name not in said["conf"]}
    (folder / "settings").write_text(repr(others))
    (folder / "pages").write_text(pages(spark))
    sys.stdout.write(
        json.dumps({"counts": counts, "problems": proof.problems, "kept": kept}) + "\n"
    )
    spark.stop()


def commands_of_java() -> str:
    """The command lines of Java on this machine, as all its users see them; this one's among."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_text(errors="replace").replace("\0", " "))
    return "\n".join(one for one in found if "org.apache.spark.deploy.SparkSubmit" in one)


def reading(spark: Any, said: Any, **options: str) -> Any:
    """A DataFrame of the topic."""
    ottla.lake.register(spark)
    return (
        spark.read.format("ottla")
        .option("kafka.bootstrap.servers", said["bootstrap"])
        .option("subscribe", said["topic"])
        .options(**options)
        .load()
    )


def sink(spark: Any, said: Any, frame: Any) -> None:
    """A stream and a batch into a topic, the stream with the file, the batch with options."""
    options = {"kafka.bootstrap.servers": said["bootstrap"], **said["options"]}
    stream = (
        spark.readStream.format("ottla")
        .options(subscribe=said["topic"], startingOffsets="earliest", **options)
        .load()
        .select("key", "value")
        .writeStream.format("ottla")
        .options(topic=said["sink"], **options)
        .option("checkpointLocation", f"{said['folder']}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    Path(said["folder"], "progress").write_text(f"{stream.lastProgress} {stream.status}")
    (
        frame.select("key", "value")
        .write.format("ottla")
        .options(topic=said["sink"], **options)
        .mode("append")
        .save()
    )


def explained(frame: Any) -> str:
    """All plans of a DataFrame, as `explain(True)` prints them."""
    plans: str = frame._jdf.queryExecution().toString()
    return f"{plans}\n{frame._jdf.queryExecution().explainString(_mode(frame, 'formatted'))}"


def _mode(frame: Any, name: str) -> Any:
    return frame.sparkSession._jvm.org.apache.spark.sql.execution.ExplainMode.fromString(name)


def pages(spark: Any) -> str:
    """What Spark's pages show: of settings, and of each query."""
    url = spark.sparkContext.uiWebUrl
    application = f"{url}/api/v1/applications/{spark.sparkContext.applicationId}"
    wanted = [f"{url}/environment/", f"{url}/SQL/", f"{url}/StreamingQuery/", f"{url}/jobs/"]
    wanted += [f"{application}/environment", f"{application}/sql?details=true&length=1000"]
    found = []
    for one in wanted:
        with urllib.request.urlopen(one) as answer:
            found.append(answer.read().decode())
    return "\n".join(found)


if __name__ == "__main__":
    main()
