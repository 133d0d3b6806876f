"""What all tests share: the repository on the path, skips that fail in CI, logs beside failures."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
# The repository, for `rig`, `bench` and `tests.…`: the only entry, so helpers have whole names.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
# What all tests share of the rig; it needs the path set above.
from rig.secret_search import SEARCH  # noqa: E402
from rig.small_disk import small_disk  # noqa: E402, F401

IN_CI = os.environ.get("CI") == "true"

# A shell has what it starts in the background ignore interrupts, and programs started from there
# as well: those that are interrupted here would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# An example may take as long as it takes. In CI the examples are the same each time.
settings.register_profile(
    "ottla", deadline=None, derandomize=IN_CI, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ottla")


def pytest_sessionstart() -> None:
    """Keep what brokers in this process log, to search it for secrets."""
    handler = SEARCH.handler()
    for name in ("ottla", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    sys.addaudithook(SEARCH.on_audit_event)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a secret of a test stands in a log."""
    found = SEARCH.found()
    SEARCH.close()
    if found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        sys.stdout.write("\n".join(["", "== secrets in logs ==", *found, ""]))


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """CI has everything that a test may need, so a skip there means that something broke."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped although CI=true: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: Any = yield
    if IN_CI:
        _refuse_skip(report)
    if report.failed:
        report.sections += _logs(item)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report: Any = yield
    if IN_CI:
        _refuse_skip(report)
    return report


def _logs(item: pytest.Item) -> list[tuple[str, str]]:
    """What every broker among the test's fixtures has printed of late."""
    from rig.nodes import Node  # Needs the path set above.

    fixtures: dict[str, Any] = getattr(item, "funcargs", {})
    return [
        (f"log of {name}", value.process.log_tail())
        for name, value in fixtures.items()
        if isinstance(value, Node)
    ]
