"""Pipelines as people run them: plan, run, follow, status, history, and how they end."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rig.probe import free_port

import ottla.lake
import ottla.testing
from ottla.base.ids import TopicPartition
from ottla.client import sync
from tests.system.cli.command_here import CommandHere
from tests.system.cli.ottla_command import Command

MakeTopic = Callable[..., str]


@pytest.fixture
def run(broker: ottla.testing.Broker) -> Command:
    return CommandHere(broker.bootstrap)


def write(broker: ottla.testing.Broker, topic: str, count: int, partition: int = 0) -> None:
    with sync.Producer(broker.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"value%d" % number, partition=partition)
        producer.flush()


def pipeline(folder: Path, topic: str, source: str = "", more: str = "") -> str:
    """A pipeline's file; it runs in this process."""
    path = folder / "pipeline.toml"
    path.write_text(
        f'[source]\ntopic = "{topic}"\n{source}\n[target]\ntable = "{folder}/table"\n'
        f'[spark]\nmaster = "here"\n{more}'
    )
    return str(path)


def numbers(metrics: Path) -> dict[str, float]:
    """The samples of a file of metrics; of those with several labels, the last."""
    samples = re.findall(r"^(\w+)\{.*\} (\S+)$", metrics.read_text(), re.MULTILINE)
    return {name: float(value) for name, value in samples}


def test_plan_run_status_and_history_of_one_file(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A plan writes nothing; then a run does it; then the plan is empty."""
    topic = make_topic(partitions=2)
    write(broker, topic, 30)
    write(broker, topic, 12, partition=1)
    path = pipeline(tmp_path, topic)

    planned = run("lake", "plan", path, "-o", "json").json
    assert (planned["offsets"], planned["version"], planned["lost"]) == (42, 1, [])
    assert [one["end"] for one in planned["partitions"]] == [30, 12]
    assert planned["lag_s"] >= 0
    assert not (tmp_path / "table").exists()
    assert f"42 offsets of {topic}, about " in run("lake", "plan", path).out

    assert "42 rows in 2 files" in run("lake", "run", path).out
    assert run("lake", "plan", path).out.endswith(f"nothing new in {topic}\n")
    again = run("lake", "run", path)
    assert (again.code, again.out) == (0, f"nothing new in {topic}; the table holds 42 rows\n")

    write(broker, topic, 5)
    status = run("lake", "status", path, "-o", "json").json
    assert (status["rows"], status["files"], status["loads"], status["lag_offsets"]) == (
        42,
        2,
        1,
        5,
    )
    assert (status["format"], status["orphans"], status["writer_epoch"]) == ("parquet", [], 0)
    assert status["lag_s"] >= 0
    # The same table by its folder.
    assert run("lake", "status", f"{tmp_path}/table", "-o", "json").json["rows"] == 42
    assert run("lake", "status", path, "--offline", "-o", "json").json["lag_offsets"] is None

    run("lake", "run", path)
    commits = run("lake", "history", path, "-o", "json").json
    assert [(one["version"], one["kind"], one["rows"]) for one in commits] == [
        (1, "load", 42),
        (2, "load", 5),
    ]
    assert "2 commits; the table holds 47 rows" in run("lake", "history", f"{tmp_path}/table").out
    assert run("lake", "verify", path).out.splitlines()[-1].startswith("proven: 47 rows")
    verdict = json.loads(run("lake", "certificate", path).out)["verdict"]
    assert (verdict["proven"], verdict["compared"]) == (True, 47)


def test_progress_ends_at_everything(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """On standard error, in a line at the end where that is no terminal."""
    topic = make_topic()
    write(broker, topic, 30)
    error = run("lake", "run", pipeline(tmp_path, topic)).error
    (line,) = error.splitlines()
    assert line.startswith("100% · 30 of 30 offsets · ")
    assert " · 1 of 1 tasks" in line


def test_an_error_begins_on_a_clean_line(
    broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """On a terminal, where the line of progress renews itself."""
    topic = make_topic()
    write(broker, topic, 5)
    broken = tmp_path / "table"
    words = f"lake load {topic} --to {broken} --master here --value json"
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "ottla.cli", *words.split(), "--bootstrap", broker.bootstrap],
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    os.close(theirs)
    said = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 1
    assert "0 of 1 tasks" in said
    assert "\r\x1b[Kottla: " in said


def test_follow_takes_a_file(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """With the same table as `run`."""
    topic = make_topic()
    write(broker, topic, 30)
    path = pipeline(tmp_path, topic, more='[schedule]\nevery = "200ms"\n')
    run("lake", "run", path)
    write(broker, topic, 7)
    assert "7 rows" in run("lake", "follow", path, "--once").out
    kinds = [one["kind"] for one in run("lake", "history", path, "-o", "json").json]
    assert kinds == ["load", "epoch", "load"]


def test_follow_writes_the_numbers_of_its_file(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """At the end at the latest; a follow that fails says so in the numbers."""
    topic = make_topic()
    write(broker, topic, 30)
    metrics = tmp_path / "numbers.prom"
    path = pipeline(tmp_path, topic, more=f'[report]\nmetrics = "{metrics}"\n')
    run("lake", "follow", path, "--once", "--max-bytes", "200")

    assert (numbers(metrics)["ottla_lake_rows"], numbers(metrics)["ottla_lake_lag_offsets"]) == (
        30,
        0,
    )
    assert numbers(metrics)["ottla_lake_last_run_success"] == 1
    broken = pipeline(tmp_path, topic, 'from = "7:1"', f'[report]\nmetrics = "{metrics}"\n')
    answer = run.try_to("lake", "follow", broken, "--once")
    assert answer.code == 1
    assert "there is no partition 7" in answer.error
    assert numbers(metrics)["ottla_lake_last_run_success"] == 0
    both = run.try_to("lake", "follow", path, "--format", "delta")
    assert both.code == 2
    assert "--format has to stand in the pipeline's file" in both.error


def test_a_changelog_has_progress_and_numbers(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """`run` and `follow` of its file do as they do for a table of rows."""
    topic = make_topic()
    metrics = tmp_path / "numbers.prom"
    path = Path(pipeline(tmp_path, topic, more=f'[report]\nmetrics = "{metrics}"\n'))
    path.write_text(path.read_text().replace("[spark]", 'kind = "latest"\n[spark]', 1))

    def change(value: bytes) -> None:
        with sync.Producer(broker.bootstrap) as producer:
            for key in (b"a", b"b"):
                producer.send(topic, value, key, partition=0)
            producer.flush()

    change(b"1")
    (line,) = run("lake", "run", str(path)).error.splitlines()
    assert line.startswith("100% · 2 of 2 offsets · ")
    assert numbers(metrics)["ottla_lake_commits"] == 1
    change(b"2")
    run("lake", "follow", str(path), "--once")
    assert (
        numbers(metrics)["ottla_lake_commits"],
        numbers(metrics)["ottla_lake_last_run_rows"],
    ) == (2, 2)
    metrics.unlink()
    change(b"3")
    with subprocess.Popen(
        run.line("lake", "follow", str(path), "--every", "1s"),
        stdout=subprocess.PIPE,
        env=run.environment,
        text=True,
    ) as process:
        assert process.stdout is not None
        for said in process.stdout:
            if "applied" in said:
                process.terminate()
    assert process.returncode == 0
    # The third is the writer epoch of the one that follows.
    assert (
        numbers(metrics)["ottla_lake_commits"],
        numbers(metrics)["ottla_lake_last_run_success"],
    ) == (4, 1)
    with sync.Producer(broker.bootstrap) as producer:
        producer.send(topic, b"no key", partition=0)
        producer.flush()
    assert run.try_to("lake", "follow", str(path), "--once").code == 1
    assert numbers(metrics)["ottla_lake_last_run_success"] == 0


@pytest.mark.parametrize("kind", ["latest", "history"])
def test_a_file_may_say_a_table_with_a_row_of_each_key(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path, kind: str
) -> None:
    """All commands take it: run, follow, status, history, verify."""
    topic = make_topic()
    path = Path(pipeline(tmp_path, topic))
    said = path.read_text().replace("[spark]", f'kind = "{kind}"\n[spark]')
    path.write_text(said)

    def change(value: bytes) -> None:
        with sync.Producer(broker.bootstrap) as producer:
            producer.send(topic, value, b"a", partition=0)
            producer.flush()

    change(b"1")
    assert "1 row" in run("lake", "run", str(path)).out
    change(b"2")
    assert run("lake", "status", str(path), "-o", "json").json["lag_offsets"] == 1
    assert "1 change applied" in run("lake", "follow", str(path), "--once").out
    status = run("lake", "status", str(path), "-o", "json").json
    assert (status["rows"], status["lag_offsets"]) == (1 if kind == "latest" else 2, 0)
    kinds = [one["kind"] for one in run("lake", "history", str(path), "-o", "json").json]
    assert kinds == ["changelog", "changelog"]
    assert run("lake", "verify", str(path)).out.splitlines()[-1].startswith("proven")
    path.write_text(said.replace(kind, "newest"))
    assert "it is one of rows, latest, history" in run.try_to("lake", "run", str(path)).error


@pytest.mark.parametrize(("verb", "seconds_max"), [("run", 60), ("plan", 10), ("follow", 60)])
def test_a_wait_for_brokers_is_said(verb: str, seconds_max: int, tmp_path: Path) -> None:
    """Not a minute of silence: which address it tries, and how long; a person waits for a plan."""
    apart = Command(f"127.0.0.1:{free_port()}")
    path = pipeline(tmp_path, "flights", f'bootstrap = "{apart.bootstrap}"')
    with subprocess.Popen(
        apart.line("lake", verb, path), stderr=subprocess.PIPE, env=apart.environment, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.kill()
    assert f"cannot connect to {apart.bootstrap} (" in said
    seconds = re.search(r"; it is tried again for up to (\d+) s$", said)
    assert seconds
    assert int(seconds[1]) <= seconds_max
    assert seconds_max == 10 or int(seconds[1]) > 10


def test_words_that_are_wrong_end_with_2(run: Command, tmp_path: Path) -> None:
    """Also those in the file, with the key."""
    path = tmp_path / "p.toml"
    path.write_text('[source]\ntopik = "flights"\n[target]\ntable = "/lake"\n')
    answer = run.try_to("lake", "run", str(path))
    assert answer.code == 2
    assert "did you mean topic?" in answer.error
    assert run.try_to("lake", "plan", str(tmp_path / "none.toml")).code == 2
    assert run.try_to("lake", "follow", "flights").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("load", "flights", "--to", "DIR", "--from", "banana"),
        ("load", "flights", "--to", "DIR", "--until", "@noon"),
        ("load", "flights", "--to", "gopher://lake/flights"),
        ("load", "flights", "--to", "s3:/lake/flights"),
        ("load", "flights", "--to", "DIR", "--value", "banana"),
        ("load", "flights", "--to", "DIR", "--value", "json", "--column", "id=banana"),
        ("load", "flights", "--to", "DIR", "--value", "avro", "--schema-file", "SCHEMA"),
        ("follow", "flights", "--to", "DIR", "--from", "banana"),
        ("changelog", "flights", "--to", "DIR", "--from", "banana"),
        ("replace", "flights", "--to", "DIR", "--from", "banana", "--until", "latest"),
        ("replace", "flights", "--to", "DIR", "--offsets", "banana"),
        ("try-schema", "flights", "--value", "banana"),
        ("verify", "gopher://lake/flights"),
        ("certificate", "gopher://lake/flights"),
        ("compact", "gopher://lake/flights", "--here"),
        ("expire", "gopher://lake/flights"),
        ("expire", "DIR", "--older-than", "banana"),
        ("files", "gopher://lake/flights"),
        ("history", "gopher://lake/flights"),
        ("status", "gopher://lake/flights"),
    ],
    ids=" ".join,
)
def test_words_of_every_verb_that_mean_nothing_end_with_2(
    run: Command, make_topic: MakeTopic, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """As shells and schedulers expect: another try is in vain; with `-o json`, too."""
    (tmp_path / "schema.avsc").write_text("banana")
    places = {"DIR": f"{tmp_path}/table", "SCHEMA": f"{tmp_path}/schema.avsc", "flights": "x"}
    places["flights"] = make_topic()
    said = [places.get(word, word) for word in words]
    answer = run.try_to("lake", *said)
    assert answer.code == 2, answer
    assert not (tmp_path / "table").exists()
    if words[0] != "certificate":
        answer = run.try_to("lake", *said, "-o", "json")
        assert (answer.code, json.loads(answer.error)["error"]["code"]) == (2, "USAGE")


def test_words_in_a_file_that_mean_nothing_end_with_2(
    run: Command, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Boundaries and declarations, which are read where they are used."""
    for source, more in (
        ('from = "banana"', ""),
        ('until = "banana"', ""),
        ("", '[decode]\nvalue = "banana"\n'),
    ):
        path = pipeline(tmp_path, make_topic(), source, more)
        assert run.try_to("lake", "run", path).code == 2


def test_a_table_that_is_not_proven_ends_with_3(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Its certificate, too, which is written and says so."""
    topic = make_topic()
    write(broker, topic, 10)
    path = pipeline(tmp_path, topic)
    run("lake", "run", path)
    (file,) = (tmp_path / "table" / "data").glob("*.parquet")
    file.unlink()
    assert run.try_to("lake", "verify", path).code == 3
    answer = run.try_to("lake", "certificate", path)
    assert answer.code == 3
    assert json.loads(answer.out)["verdict"]["proven"] is False


def test_failure_ends_with_1_and_stands_in_the_numbers(
    run: Command, tmp_path: Path, make_topic: MakeTopic
) -> None:
    """A topic that is not there; nothing is made at the target."""
    metrics = tmp_path / "numbers.prom"
    path = pipeline(tmp_path, "no-such-topic", more=f'[report]\nmetrics = "{metrics}"\n')
    answer = run.try_to("lake", "run", path)
    assert answer.code == 1
    assert "no-such-topic" in answer.error
    assert not (tmp_path / "table").exists()
    assert 'last_run_success{topic="no-such-topic"' in metrics.read_text()
    assert metrics.read_text().splitlines()[2].endswith(" 0")


def test_loss_ends_with_3_until_it_is_accepted(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """A plan shows it before; the history has it on record after."""
    topic = make_topic()
    write(broker, topic, 30)
    path = pipeline(tmp_path, topic)
    run("lake", "run", path)
    write(broker, topic, 20)
    with sync.Admin(broker.bootstrap) as admin:
        admin.logs.delete_records({TopicPartition(topic, 0): 40})

    loss = "10 of the offsets 30 to 50 were deleted before they were loaded"
    planned = run.try_to("lake", "plan", path)
    assert planned.code == 3
    assert loss in planned.out
    table = ("--to", f"{tmp_path}/table", "--master", "here")
    for words in (("run", path), ("load", topic, *table), ("follow", topic, *table, "--once")):
        failed = run.try_to("lake", *words, "-o", "json")
        assert failed.code == 3
        error = json.loads(failed.error)["error"]
        assert error["code"] == "OFFSET_OUT_OF_RANGE"
        assert loss in str(error)

    assert run("lake", "run", pipeline(tmp_path, topic, "accept_loss = true")).code == 0
    newest = run("lake", "history", path, "-o", "json").json[-1]
    assert newest["on_record"] == ["10 offsets of partition 0 lost, which was accepted"]


def test_metrics_follow_the_table(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    write(broker, topic, 30)
    metrics = tmp_path / "numbers.prom"
    run("lake", "run", pipeline(tmp_path, topic, more=f'[report]\nmetrics = "{metrics}"\n'))
    found = numbers(metrics)
    assert (found["ottla_lake_rows"], found["ottla_lake_lag_offsets"]) == (30, 0)
    assert found["ottla_lake_last_run_success"] == 1


def test_small_files_are_compacted_by_the_same_file(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """And the history has it as what it is."""
    topic = make_topic()
    path = pipeline(tmp_path, topic)
    for _ in range(2):
        write(broker, topic, 10)
        run("lake", "run", path)
    run("lake", "compact", path, "--here")
    newest = run("lake", "history", path, "-o", "json").json[-1]
    assert (newest["kind"], newest["files"], newest["removed_files"]) == ("compaction", 1, 2)
    assert run("lake", "status", path, "-o", "json").json["files"] == 1

    said = run("lake", "expire", path, "--keep", "1", "--dry-run").out
    assert "2 files would be deleted" in said
    assert said.count("data/v") == 2
    assert run("lake", "expire", path, "-o", "json").json["removed"] == []
    done = run("lake", "expire", path, "--older-than", "0s")
    assert "2 files deleted" in done.out
    assert "which only versions before 3 have" in done.out
    proof = run("lake", "verify", path)
    assert "versions 1 to 2 are expired" in proof.out
    assert "proven: 20 rows" in proof.out

    again = run("lake", "replace", path, "--offsets", "0:5-15", "--here").out
    assert "nothing differs: the table has the 10 rows of the topic" in again
    decode = ("--value", "string")
    done = run("lake", "replace", path, "--from", "0:5", "--until", "0:15", "--here", *decode).out
    assert "10 rows in place of 10" in done
    assert (
        f"{topic}-0: offsets 5 to 15 were read again since: 10 rows"
        in run("lake", "verify", path).out
    )
    kinds = [one["kind"] for one in run("lake", "history", path, "-o", "json").json]
    assert kinds == ["load", "load", "compaction", "compaction", "replacement"]
    for words in (("--offsets", "0:5"), ("--from", "0:5"), ("--offsets", "0:1-2", "--from", "0:1")):
        assert run.try_to("lake", "replace", path, *words).code == 2
    assert run.try_to("lake", "replace", topic, "--offsets", "0:1-2").code == 2


def test_typed_columns_of_a_pipeline(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """By [decode]; `follow` begins with them, and goes on with those of the first load."""
    topic = make_topic()
    with sync.Producer(broker.bootstrap) as producer:
        for number in range(5):
            producer.send(topic, b'{"id": %d}' % number, partition=0)
        producer.flush()
    decode = '[decode]\nvalue = "json"\n[decode.columns]\nid = "int64"\n'
    path = pipeline(tmp_path, topic, more=decode)
    (tmp_path / "first").mkdir()
    first = pipeline(tmp_path / "first", topic, more=decode)
    run("lake", "follow", first, "--once")
    begun = ottla.lake.table(f"{tmp_path}/first/table", columns=["id", "offset"]).to_arrow()
    run("lake", "run", path)
    rows = ottla.lake.table(f"{tmp_path}/table", columns=["id", "offset"]).to_arrow()
    assert rows.to_pydict() == {"id": [0, 1, 2, 3, 4], "offset": [0, 1, 2, 3, 4]}
    assert begun.to_pydict() == rows.to_pydict()
    run("lake", "follow", path, "--once")


def test_a_file_in_place_of_the_table_is_one_sentence(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Of every command that opens a table."""
    topic = make_topic()
    (tmp_path / "table").write_text("Dear Ida")
    path = pipeline(tmp_path, topic)
    for verb in ("plan", "run", "status", "history", "verify", "certificate", "compact", "expire"):
        answer = run.try_to("lake", verb, path)
        assert (answer.code, answer.out) == (1, "")
        assert answer.error == (
            f"ottla: {tmp_path}/table cannot be a folder: a file is at {tmp_path}/table; move it, "
            "or choose another folder (KAFKA_STORAGE_ERROR)\n"
        )


def test_a_certificate_that_cannot_be_written_is_one_sentence(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """As with a path whose folder is not there."""
    path = pipeline(tmp_path, make_topic())
    run("lake", "run", path)
    answer = run.try_to("lake", "certificate", path, "--to", f"{tmp_path}/none/certificate.json")
    assert answer.code == 1
    assert "none/certificate.json can't be written: No such file or directory" in answer.error


def test_a_followed_changelog_refuses_what_it_does_not_have(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """And does what it has: an operator's word builds on a table that contradicts itself."""
    topic = make_topic()
    path = Path(pipeline(tmp_path, topic))
    path.write_text(path.read_text().replace("[spark]", 'kind = "latest"\n[spark]'))
    refused = run.try_to("lake", "follow", str(path), "--max-bytes", "100")
    assert refused.code == 2
    assert "--max-bytes is for tables of rows" in refused.error
    path.write_text(path.read_text().replace("[target]", 'until = "0:3"\n[target]'))
    refused = run.try_to("lake", "follow", str(path))
    assert refused.code == 2
    assert "is not followed until 0:3" in refused.error


def test_a_file_without_decode_is_told(run: Command, make_topic: MakeTopic, tmp_path: Path) -> None:
    """In words, not as a missing key."""
    path = pipeline(tmp_path, make_topic())
    answer = run.try_to("lake", "load", "any", "--to", f"{tmp_path}/t", "--decode-file", path)
    assert (answer.code, answer.error) == (2, f"Error: {path} has no table [decode]\n")


def test_files_have_the_size_that_was_asked_for(
    run: Command, broker: ottla.testing.Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """By the option of a load and by the key of a pipeline: the footers say so."""
    topic = make_topic()
    with sync.Producer(broker.bootstrap) as producer:
        for number in range(40):
            producer.send(topic, bytes([number]) * 1000, partition=0)
            producer.flush()  # Batches of one record each: no task cuts a batch.

    def rows_of_files(table: Path) -> list[int]:
        return [pq.read_metadata(file).num_rows for file in ottla.lake.files(str(table))]

    table = tmp_path / "by-options"
    words = ("--to", str(table), "--master", "here", "--target-file-size", "12Ki")
    run("lake", "load", topic, *words)
    by_options = rows_of_files(table)
    assert sum(by_options) == 40
    assert 3 <= len(by_options) <= 6
    assert max(by_options) <= 14

    table = tmp_path / "by-groups"
    run("lake", "load", topic, "--to", str(table), "--master", "here", "--row-group-rows", "16")
    [file] = ottla.lake.files(str(table))
    footer = pq.read_metadata(file)
    assert [footer.row_group(n).num_rows for n in range(footer.num_row_groups)] == [16, 16, 8]

    path = Path(pipeline(tmp_path, topic))
    path.write_text(path.read_text().replace("[spark]", 'file_size = "12KiB"\n[spark]'))
    run("lake", "run", str(path))
    assert rows_of_files(tmp_path / "table") == by_options
