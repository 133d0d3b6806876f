"""How the suites read what other projects' tests print, and set both sides beside each other."""

import json
from collections import Counter
from pathlib import Path

import pytest
from suites import go_tests, java, kafka_python, report
from suites.result import Outcome, Result, Row, side_by_side
from suites.suite import Suite, timed


def events(*lines: tuple[str, str | None, object]) -> str:
    """What `go test -json` prints: action, test, and output or seconds."""
    printed = ["go: downloading something\n"]
    for action, test, more in lines:
        event = {"Action": action, "Package": "p", "Test": test}
        event["Output" if action == "output" else "Elapsed"] = more
        printed.append(json.dumps(event) + "\n")
    return "".join(printed)


def test_go_tests_are_read_from_their_events() -> None:
    """A failure says the test's own lines, without those of loggers."""
    printed = events(
        ("run", "TestA", None),
        ("output", "TestA", "[INFO] connected\n"),
        ("output", "TestA", "    a_test.go:7: saw 3, want 4\n"),
        ("fail", "TestA", 1.5),
        ("skip", "TestB", 0.0),
        ("pass", None, 2.0),
    )
    assert go_tests.parse(printed) == [
        Result("TestA", Outcome.FAIL, 1.5, "a_test.go:7: saw 3, want 4"),
        Result("TestB", Outcome.SKIP),
    ]


def test_parts_of_a_go_test_stand_for_the_whole() -> None:
    """A test with subtests is no row of its own."""
    printed = events(("pass", "TestA/one", 1.0), ("fail", "TestA/two", 2.0), ("fail", "TestA", 3.0))
    assert [result.test for result in go_tests.parse(printed)] == ["TestA/one", "TestA/two"]


def test_a_go_test_that_never_ended_has_failed() -> None:
    """A panic or the time limit ends the process, and the test with it."""
    assert go_tests.parse(events(("output", "TestA", "=== RUN TestA\n"))) == [
        Result("TestA", Outcome.FAIL, 0.0, "still running when the process ended")
    ]


def test_pytests_report_is_read(tmp_path: Path) -> None:
    """Passed, failed, in error and skipped, each with the first words of its reason."""
    file = tmp_path / "report.xml"
    file.write_text(
        '<testsuites><testsuite><testcase classname="test.a" name="one" time="0.5"/>'
        '<testcase classname="test.a" name="two" time="1"><failure message="no&#10;broker"/>'
        '</testcase><testcase classname="test.a" name="three" time="0"><skipped message="old"/>'
        "</testcase></testsuite></testsuites>"
    )
    assert kafka_python.parse(file) == [
        Result("a: one", Outcome.PASS, 0.5),
        Result("a: two", Outcome.FAIL, 1.0, "no broker"),
        Result("a: three", Outcome.SKIP, 0.0, "old"),
    ]


def test_a_test_of_one_side_is_a_row_of_both() -> None:
    """What one side never reached is said, and counts as a difference."""
    rows = side_by_side([Result("a", Outcome.PASS)], [Result("b", Outcome.PASS)])
    assert [(row.test, row.ottla.outcome, row.kafka.outcome) for row in rows] == [
        ("a", Outcome.PASS, Outcome.MISSING),
        ("b", Outcome.MISSING, Outcome.PASS),
    ]
    assert all(row.differs for row in rows)


def test_retried_produce_errors_are_counted_by_name(tmp_path: Path) -> None:
    """As Java's producer logs them; other errors are no business of this count."""
    log = tmp_path / "client.log"
    log.write_text(
        "WARN Got error produce response (3 attempts left). Error: NOT_ENOUGH_REPLICAS\n"
        "WARN retrying. Error: NOT_ENOUGH_REPLICAS_AFTER_APPEND\n"
        "WARN retrying. Error: NOT_ENOUGH_REPLICAS\n"
        "WARN Error: UNKNOWN_TOPIC_OR_PARTITION\n"
    )
    assert java.retried([log]) == Counter(
        {"NOT_ENOUGH_REPLICAS": 2, "NOT_ENOUGH_REPLICAS_AFTER_APPEND": 1}
    )


def test_a_check_that_raises_has_failed() -> None:
    """The reason is the error; the checks behind it are run all the same."""

    def broken() -> str | None:
        raise TimeoutError("no answer")

    assert timed("a", broken).reason == "TimeoutError: no answer"
    assert timed("b", lambda: None).outcome is Outcome.PASS


@pytest.fixture
def suite() -> Suite:
    return Suite("own", "Own tests", "Somewhere: own 1", (), lambda: None, lambda _: [])


def test_a_section_is_replaced_by_the_next_run(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sections of other suites, and what is written by hand, stay."""
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n<!-- suite other -->\nkept\n<!-- end of suite other -->\n")
    monkeypatch.setattr(report, "DOCUMENT", page)
    for outcome in (Outcome.FAIL, Outcome.PASS):
        ours, theirs = Result("t|1", outcome, 1.0, "why"), Result("t|1", Outcome.PASS, 2.0)
        report.write(suite, [Row("t|1", ours, theirs)], "Run today.")
    text = page.read_text()
    assert text.startswith("# Title\n\n<!-- suite other -->\nkept\n<!-- end of suite other -->\n")
    assert text.count("## Own tests") == 1
    assert "| t\\|1 | pass 1.0 s | pass 2.0 s |" in text


def test_a_suite_says_what_the_machine_lacks() -> None:
    """So that it is skipped with a reason."""
    lacking = Suite("own", "Own", "-", ("no-such-program",), lambda: None, lambda _: [])
    assert lacking.missing() == "no-such-program is not on this machine"
