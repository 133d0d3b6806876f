"""What clients saw is written down, measured and added up as it was."""

import json

import pytest
from chaos import totals
from chaos.commands import missing
from chaos.gaps import Moment, Waits
from chaos.histories import GROUP, Histories, parts, read
from chaos.hosts import claim_subnet
from chaos.outcome import Outcome, Plan
from chaos.verdict import fatal
from verify.history.operation import NEVER, Operation, Step


def send(process: str, begin_s: float, end_s: float) -> Operation:
    steps = [Step("send", "t-0", 0, "v")]
    return Operation(process, "send", begin_s, end_s, "ok", steps)


def test_what_is_told_of_each_partition_is_read_again(tmp_path):
    """Reads of several partitions are parted, and an operation without an answer stays open."""
    histories = Histories(tmp_path, "c")
    sent = Step("send", "t-0", None, "a")
    histories.record("t-0", "send", (1.0, NEVER), steps=[sent])
    histories.record_reads((2.0, 3.0), [Step("poll", "t-0", 7, "a"), Step("poll", "t-1", 9, "b")])
    histories.record(GROUP, "commit", (4.0, 5.0), group="g", offsets={"t-0": 8})
    histories.close()
    assert parts(tmp_path) == ["group", "t-0", "t-1"]
    first, second = read(tmp_path, "t-0")
    assert (first.outcome, first.end_s, first.steps) == ("info", NEVER, [sent])
    assert (second.f, second.outcome, second.steps) == ("poll", "ok", [("poll", "t-0", 7, "a")])
    (third,) = read(tmp_path, "t-1")
    assert third.steps == [("poll", "t-1", 9, "b")]
    (commit,) = read(tmp_path, GROUP)
    assert (commit.group, commit.offsets, commit.begin_s, commit.end_s) == ("g", {"t-0": 8}, 4, 5)


def test_a_gap_belongs_to_the_last_fault_before_its_end():
    """A partition waits as long as all its writers, a writer may wait longer."""
    moments = [Moment("kill", "", at_s, at_s, at_s) for at_s in (10.0, 20.0)]
    waits = Waits(moments)
    waits.take(
        [
            *(send("w0", at_s, at_s) for at_s in (9.0, 12.0, 19.0, 24.0)),
            *(send("w1", at_s, at_s) for at_s in (9.5, 10.5, 18.0, 21.5, 24.5)),
            send("no writer", 11.0, 11.0),
        ],
        ["w0", "w1"],
    )
    assert waits.of_partitions_s == [6.0, 2.5]
    assert waits.of_writers_s == [7.5, 5.0]


def test_runs_are_added_up_by_store(tmp_path):
    """Cycles, records and findings of all runs stand in one row for each store."""
    run = {
        "store": "sqlite",
        "clients": ["librdkafka"],
        "flush": "group",
        "cycles": {"kill": 2, "kill-controller": 1, "kill-all": 1, "stop": 1, "stop-all": 1},
        "acknowledged": 1500,
        "lost": 0,
        "duplicated": 0,
        "divergent": 0,
        "anomalies": {},
        "gaps_s": {"kill": [0.1, 0.3, 0.2], "kill-controller": [0.5], "stop": [3.0, 3.5]},
        "writer_gaps_s": {"kill": [0.1, 0.3, 0.9], "kill-controller": [0.5], "stop": [3.0, 3.5]},
        "failure": None,
    }
    worse = {**run, "store": "zookeeper", "lost": 1, "anomalies": {"lost-write": 1, "G1a": 2}}
    worse["fatal"] = 3
    file = tmp_path / "chaos.jsonl"
    ended = {**run, "cycles": {}, "acknowledged": 0, "gaps_s": {}, "writer_gaps_s": {}}
    ended["failure"] = "SystemExit: 143"
    file.write_text("".join(json.dumps(line) + "\n" for line in (run, run, worse, ended)))
    rows = [row.split() for row in totals.table(file).splitlines()]
    assert rows[1] == ["sqlite", "3", "8", "4", "0", "0", "0", "3,000", *["0"] * 6]
    assert rows[2] == [
        "zookeeper",
        "1",
        "4",
        "2",
        "0",
        "0",
        "0",
        "1,500",
        "1",
        "0",
        "0",
        "2",
        "3",
        "0",
    ]
    assert rows[3] == ["all", "4", "12", "6", "0", "0", "0", "4,500", "1", "0", "0", "2", "3", "0"]
    assert ["kill", "sqlite", "6", "0.20", "s", "0.30", "s", "0.30", "s", "0.90", "s"] in rows


def test_a_run_that_failed_is_counted_as_such(tmp_path):
    """Its cycles were not judged; that it failed stands in the last column."""
    file = tmp_path / "chaos.jsonl"
    line = {"store": "zookeeper", "clients": [], "flush": "os", "cycles": {}, "acknowledged": 1}
    line |= {"lost": 0, "duplicated": 0, "divergent": 0, "anomalies": {}, "failure": "x"}
    file.write_text(json.dumps({**line, "gaps_s": {}, "writer_gaps_s": {}}) + "\n")
    rows = [row.split() for row in totals.table(file).splitlines()]
    assert rows[1] == ["zookeeper", "1", "0", "0", "0", "0", "0", "1", "0", "0", "0", "0", "0", "1"]


def test_a_fatal_error_of_a_producer_is_a_violation(tmp_path):
    """Whichever producer noted it, in a folder of its own or not."""
    outcome = Outcome(Plan(["kill"], 1, 1, 1), is_whole=True)
    assert outcome.is_good
    (tmp_path / "hasty").mkdir()
    (tmp_path / "hasty" / "hasty.fatal").write_text("12:00:00 OUT_OF_ORDER: rewound\n")
    (tmp_path / "writer0.fatal").write_text("12:00:01 _INCONSISTENT: a\n12:00:02 _FATAL: b\n")
    outcome.fatal = fatal(tmp_path)
    assert outcome.fatal == [
        "hasty: 12:00:00 OUT_OF_ORDER: rewound",
        "writer0: 12:00:01 _INCONSISTENT: a",
        "writer0: 12:00:02 _FATAL: b",
    ]
    assert not outcome.is_good
    assert "fatal errors of producers    3" in outcome.table()


def test_two_runs_at_once_have_networks_of_their_own():
    """The claim lasts as long as its file is open."""
    if reason := missing(("ip",)):
        pytest.skip(reason)
    first, one = claim_subnet()
    second, other = claim_subnet()
    assert one != other
    second.close()
    third, again = claim_subnet()
    assert again == other
    first.close()
    third.close()
