"""`ottla produce` and `ottla consume`: what goes in comes out."""

import itertools
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.client import TopicPartition, sync
from tests.system.cli.ottla_command import Command

MakeTopic = Callable[..., str]


def test_lines_become_records_and_records_lines(run: Command, name: str) -> None:
    """Every byte between line feeds arrives; a last line without one, and empty ones, count."""
    told = run("produce", name, stdin=b"one\r\n\n\xff\xfe\nlast")
    assert told.out == (
        f"4 records to {name}, partition 0, offsets 0 to 3; the topic did not exist and was "
        "created\n"
    )
    read = subprocess.run(
        run.line("consume", name), capture_output=True, check=True, env=run.environment
    )
    assert read.stdout == b"one\r\n\n\xff\xfe\nlast\n"


def test_keys_headers_and_nulls(run: Command, make_topic: MakeTopic) -> None:
    """The first separator splits; a key goes where Java's producer would put it (murmur2)."""
    topic = make_topic(partitions=3)
    sent = run(
        *("produce", topic, "-K", "\\t", "--null", "NULL", "-H", "host=web1", "-o", "json"),
        stdin="a\t1\nb\t2\tand more\nc\tNULL\n",
    ).json
    assert (sent["topic"], sent["delivered"], sent["failed"]) == (topic, 3, 0)
    assert (sent["error"], sent["created"], sent["bytes"]) == (None, False, 24)
    rows = [json.loads(line) for line in run("consume", topic, "--json").lines]
    found = {row["key"]: row for row in rows}
    assert found["b"]["value"] == "2\tand more"
    assert found["c"]["value"] is None
    assert found["a"]["headers"] == [["host", "web1"]]
    assert [set(row) for row in rows] == [
        {"topic", "partition", "offset", "timestamp", "time", "key", "value", "headers"}
    ] * 3
    assert {key: row["partition"] for key, row in found.items()} == {"a": 1, "b": 2, "c": 1}
    assert {entry["partition"]: entry["records"] for entry in sent["partitions"]} == {1: 2, 2: 1}


def test_files_codecs_and_acks(run: Command, make_topic: MakeTopic, tmp_path: Path) -> None:
    """Files come one after the other; every codec and level of acknowledgement delivers."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("1\n2\n")
    second.write_text("3\n")
    topic = make_topic()
    run("produce", topic, "-f", str(first), "-f", str(second), "-z", "zstd", "--acks", "1")
    for codec in ("gzip", "snappy", "lz4"):
        run("produce", topic, "-z", codec, stdin=f"{codec}\n")
    run("produce", topic, "--acks", "0", "-p", "0", stdin="unacknowledged\n")
    assert run("consume", topic).lines == [
        *("1", "2", "3", "gzip", "snappy", "lz4", "unacknowledged")
    ]


def test_where_to_start_and_end(run: Command, make_topic: MakeTopic) -> None:
    """By offset, from the end, by count, by time, by partition, by content."""
    topic = make_topic(partitions=2)
    run("produce", topic, "-p", "0", stdin="".join(f"{number}\n" for number in range(100)))
    run("produce", topic, "-p", "1", stdin="x\ny\n")
    assert run("consume", topic, "-p", "0", "--from", "97").lines == ["97", "98", "99"]
    assert sorted(run("consume", topic, "--from", "-2").lines) == ["98", "99", "x", "y"]
    assert run("consume", topic, "-p", "0", "-n", "2").lines == ["0", "1"]
    assert run("consume", topic, "--from", "latest").lines == []
    assert run("consume", topic, "-p", "1", "--since", "10m").lines == ["x", "y"]
    assert run("consume", topic, "--until", "2020-01-01").lines == []
    assert run("consume", topic, "-p", "1", "--from", "2020-01-01", "--until", "now").lines == [
        *("x", "y")
    ]
    assert run("consume", topic, "--grep", "^9.$", "-n", "3").lines == ["90", "91", "92"]
    assert run("consume", topic, "-p", "0", "--from", "5000").lines == []


def test_formats(run: Command, make_topic: MakeTopic) -> None:
    """Text, keys, JSON, indented JSON, and a format of one's own."""
    topic = make_topic()
    run("produce", topic, "-K", ":", stdin='k:{"a":[1,null]}\n')
    assert run("consume", topic).out == '{"a":[1,null]}\n'
    assert run("consume", topic, "--keys").out == 'k\t{"a":[1,null]}\n'
    assert run("consume", topic, "--pretty").out == ('{\n  "a": [\n    1,\n    null\n  ]\n}\n')
    assert run("consume", topic, "-o", "json", "--pretty").json["value"] == {"a": [1, None]}
    assert run("consume", topic, "--format", r"%t/%p/%o %k %S\x21\n").out == f"{topic}/0/0 k 14!\n"


def test_a_group_goes_on_where_it_stopped(run: Command, make_topic: MakeTopic) -> None:
    """What is shown is committed, and nothing else."""
    topic = make_topic()
    run("produce", topic, stdin="1\n2\n3\n4\n5\n")
    group = f"{topic}-readers"
    assert run("consume", topic, "-g", group, "-n", "2").lines == ["1", "2"]
    assert run("consume", topic, "-g", group).lines == ["3", "4", "5"]
    assert run("consume", topic, "-g", group).lines == []
    assert run("consume", topic).lines == ["1", "2", "3", "4", "5"]


def test_following_shows_what_comes_until_it_is_interrupted(
    run: Command, make_topic: MakeTopic
) -> None:
    """Records appear without a wait for more; ctrl-C ends it quietly."""
    topic = make_topic()
    run("produce", topic, stdin="old\n")
    with subprocess.Popen(
        run.line("consume", topic, "-f"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=run.environment,
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stdout.readline() == b"old\n"
        run("produce", topic, stdin="new\n")
        assert following.stdout.readline() == b"new\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(120) == 130
        assert following.stderr.read() == b""


def test_lines_that_come_slowly_are_sent_as_they_come(run: Command, make_topic: MakeTopic) -> None:
    """`tail -F log | ottla produce` delivers a line before the next one is written."""
    topic = make_topic()
    with subprocess.Popen(
        run.line("produce", topic),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=run.environment,
    ) as producing:
        assert producing.stdin is not None
        producing.stdin.write(b"first\n")
        producing.stdin.flush()
        deadline_s = time.monotonic() + 120
        while run("consume", topic).lines != ["first"]:
            assert time.monotonic() < deadline_s
        producing.stdin.write(b"second\n")
        producing.stdin.flush()
        while run("consume", topic).lines != ["first", "second"]:
            assert time.monotonic() < deadline_s
        # Interrupted, it tells what was delivered all the same.
        producing.send_signal(signal.SIGINT)
        assert producing.stdout is not None
        assert producing.stdout.read().startswith(b"2 records to ")
        assert producing.wait(120) == 130


def test_a_reader_that_has_seen_enough_ends_it_quietly(run: Command, make_topic: MakeTopic) -> None:
    """`ottla consume | head -1` prints no complaint."""
    topic = make_topic()
    run("produce", topic, stdin="x" * 99 + "\n" + "y\n" * 200_000)
    with subprocess.Popen(
        run.line("consume", topic),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=run.environment,
    ) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        assert reading.stdout.readline() == b"x" * 99 + b"\n"
        reading.stdout.close()
        assert reading.wait(120) == 0
        assert reading.stderr.read() == b""


def test_a_terminal_sees_a_bar_and_colours(run: Command, make_topic: MakeTopic) -> None:
    """Only a terminal does: programs read neither bars nor escapes."""
    topic = make_topic()
    with _on_a_terminal(run, "produce", topic) as screen:
        lines = 0
        while not ("━" in screen.shown and re.search(r"\d records", screen.shown)):
            lines += 1
            screen.write(b"line\n")
            # A bar comes with the news after a while.
            screen.look(0.7)
    assert f"{lines} records to {topic}" in screen.shown
    run("produce", topic, stdin='{"last": true}\n')
    words = ("consume", topic, "--from", "-1", "--pretty")
    with _on_a_terminal(run, *words) as screen:
        pass
    assert "\x1b[35mtrue\x1b[0m" in screen.shown
    assert "\x1b" not in run(*words).out


class Screen:
    """A terminal, and what a command on it has shown so far."""

    def __init__(self, master: int, command: "subprocess.Popen[bytes]") -> None:
        self._master = master
        self._command = command
        self._bytes = b""

    @property
    def shown(self) -> str:
        return self._bytes.decode(errors="replace")

    def write(self, data: bytes) -> None:
        assert self._command.stdin is not None
        self._command.stdin.write(data)
        self._command.stdin.flush()

    def look(self, seconds: float) -> bool:
        """Read what comes for so long; whether more may come."""
        deadline_s = time.monotonic() + seconds
        while (left_s := deadline_s - time.monotonic()) > 0:
            if select.select([self._master], [], [], left_s)[0]:
                try:
                    chunk = os.read(self._master, 65536)
                except OSError:
                    # Linux tells the end of a terminal's other side as an error.
                    return False
                if not chunk:
                    return False
                self._bytes += chunk
        return True


@contextmanager
def _on_a_terminal(run: Command, *words: str) -> Iterator[Screen]:
    """A command on a terminal of its own, which has ended well at the end of the block."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        run.line(*words),
        stdin=subprocess.PIPE,
        stdout=slave,
        stderr=slave,
        env={**run.environment, "TERM": "xterm", "COLUMNS": "120"},
    ) as showing:
        os.close(slave)
        screen = Screen(master, showing)
        yield screen
        assert showing.stdin is not None
        showing.stdin.close()
        while screen.look(1.0):
            pass
        assert showing.wait(120) == 0
    os.close(master)


def test_what_cannot_be_sent_is_counted_and_told(run: Command, make_topic: MakeTopic) -> None:
    """The count, the first error, the limit that was met and who has it (librdkafka #3125)."""
    topic = make_topic(max_message_bytes="1000")
    answer = run.try_to("produce", topic, "-o", "json", stdin="a\n" + "x" * 5000 + "\nb\n")
    assert answer.code == 1
    assert answer.json["delivered"] == 2
    assert answer.json["failed"] == 1
    assert answer.json["error"]["code"] == "MESSAGE_TOO_LARGE"
    assert "max.message.bytes" in answer.error
    split = run.try_to("produce", topic, "-K", ":", stdin="a:1\nb:2\nc\nd:4\n")
    assert split.code == 1
    assert split.out.startswith("2 records to ")
    assert "line 3 has no key separator ':': 'c'" in split.error


def test_wrong_words_about_records_are_told_with_the_right_ones(
    run: Command, make_topic: MakeTopic
) -> None:
    """Each says what can be written instead; usage is 2, what the cluster lacks is 1."""
    topic = make_topic()
    assert f"did you mean {topic}" in run.refused("consume", topic[1:])
    assert "has partitions 0 to 0, not 7" in run.refused("consume", topic, "-p", "7")
    assert "has partitions 0 to 0, not 7" in run.refused("produce", topic, "-p", "7")
    for words, told in (
        (("consume", topic, "--from", "soon"), "earliest, latest, an offset"),
        (("consume", topic, "--since", "10"), "is no time; write 2024-01-31"),
        (("consume", topic, "--until", "10 o'clock"), "is no time"),
        (("consume", topic, "--from", "1", "--since", "1m"), "give one"),
        (("consume", topic, "-f", "--until", "now"), "give one"),
        (("consume", topic, "-g", "g", "--from", "5"), "group reset"),
        (("consume", topic, "--format", "%q"), "%q means nothing"),
        (("consume", topic, "--grep", "("), "--grep"),
        (("produce", topic, "-H", "x"), "is not NAME=VALUE"),
        (("produce", topic, "-K", ""), "at least one letter"),
        (("produce", topic, "-z", "brotli"), "'gzip'"),
        (("produce", topic, "-f", "/nonexistent"), "does not exist"),
    ):
        assert told in run.misused(*words), words


def test_nobody_answering_is_told_at_once(run: Command) -> None:
    """No retries before the first word: the address, the reason, what to do."""
    nobody = Command("localhost:1")
    for words in (("topic", "list"), ("consume", "x"), ("produce", "x"), ("group", "list")):
        told = nobody.refused(*words)
        assert "cannot connect to localhost:1" in told
        assert "`ottla start` starts one" in told
    assert "write host:port" in Command("nonsense:port").refused("topic", "list")


def test_records_as_json_come_back_byte_for_byte(run: Command, make_topic: MakeTopic) -> None:
    """Keys, values, headers (binary, empty and null ones), timestamps and partitions."""
    source, copy = make_topic(partitions=3), make_topic(partitions=3)
    with sync.Producer(run.bootstrap) as producer:
        contents = [None, b"", b"text", "\N{GREEK SMALL LETTER MU}\n".encode(), b"\xff\x00\r\n"]
        for number, (key, value) in enumerate(itertools.product(contents, contents)):
            headers = [("h", one) for one in contents] if number % 2 else []
            producer.send(
                source,
                value,
                key,
                partition=number % 3,
                timestamp_ms=1_700_000_000_000 + number,
                headers=headers,
            )
    shown = run("consume", source, "--json").out
    assert "25 records" in run("produce", copy, "--json", stdin=shown).out
    assert everything_in(run, copy) == everything_in(run, source)
    assert len(everything_in(run, copy)) == 25


Known = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def everything_in(run: Command, topic: str) -> list[Known]:
    """Partition, timestamp, key, value and headers of each record, in the order of time."""
    with sync.Consumer(run.bootstrap) as consumer:
        places = [TopicPartition(topic, index) for index in range(3)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: list[Known] = []
        while any(consumer.position(place) < end for place, end in ends.items()):
            found += [
                (r.partition, r.timestamp, r.key, r.value, list(r.headers)) for r in consumer.poll()
            ]
        return sorted(found, key=lambda one: one[1])


def test_a_line_that_is_no_record_is_named(run: Command, make_topic: MakeTopic) -> None:
    """What came before it is sent."""
    topic = make_topic()
    said = run.refused("produce", topic, "--json", stdin=b'{"value":"a"}\n{"valeu":"b"}\n')
    assert "line 2 is no record" in said
    assert "there is no field 'valeu'" in said
    assert run("consume", topic).lines == ["a"]
    assert "leave out" in run.misused("produce", topic, "--json", "-K", ":")


def test_several_topics_are_read_by_name_or_pattern(run: Command, name: str) -> None:
    """Also as a member of a group."""
    one, two = f"{name}.one", f"{name}.two"
    run("produce", one, stdin="1\n")
    run("produce", two, stdin="2\n")
    assert sorted(run("consume", one, two).lines) == ["1", "2"]
    assert sorted(run("consume", "--regex", rf"{name}\..*").lines) == ["1", "2"]
    assert sorted(run("consume", one, two, "--group", name).lines) == ["1", "2"]
    assert "no topic's whole name matches" in run.try_to("consume", "-r", "zzz").error


def test_isolation_leaves_out_what_is_not_committed(run: Command, make_topic: MakeTopic) -> None:
    """Aborted records, and what comes after the first open transaction."""
    topic = make_topic()
    with (
        sync.Producer(run.bootstrap, transactional_id=topic) as done,
        sync.Producer(run.bootstrap, transactional_id=f"{topic}-2") as going,
    ):
        done.init_transactions()
        going.init_transactions()
        with done.transaction():
            done.send(topic, "kept")
        done.begin_transaction()
        done.send(topic, "dropped")
        done.flush()
        done.abort_transaction()
        going.begin_transaction()
        going.send(topic, "open")
        going.flush()
        assert run("consume", topic).lines == ["kept", "dropped", "open"]
        assert run("consume", topic, "--isolation", "read_committed").lines == ["kept"]
        going.abort_transaction()
