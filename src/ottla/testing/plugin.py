"""The pytest plugin: fixtures with brokers, and a report of what their groups went through.

The fixture `ottla_broker` is a broker of its own for each test that uses it.

`ottla` is an older name of the same fixture; inside such a test it hides the package `ottla`.

The plugin imports no part of the broker until a test uses it, so that other test runs do not
become slower. pytest rewrites the asserts of every module of a distribution that has a plugin:
it would compile Ottla's hundreds of modules again. `_AsInstalled` prevents that.
"""

import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from ottla import _compiled

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


class _AsInstalled:
    """A meta-path finder before pytest's, by which Ottla's modules are imported unchanged."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002  # The import system's signature.
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(fullname, path) if fullname.startswith("ottla.") else None


# Placed after the guard, which skips stale extensions.
_guards = [i for i, f in enumerate(sys.meta_path) if isinstance(f, _compiled.ExtensionGuard)]
sys.meta_path.insert(max(_guards, default=-1) + 1, _AsInstalled())


_Counts = tuple[int, int, int]
# The key of a test's counts among the properties of its report.
_PROPERTY = "ottla"
_before: pytest.StashKey[_Counts] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--ottla-report`."""
    parser.addoption(
        "--ottla-report",
        action="store_true",
        help="Report the rebalances of every test that had any, even if it passed and no record "
        "was delivered again.",
    )


def _counts() -> _Counts:
    tally = sys.modules.get("ottla.testing.tally")
    counts: _Counts = (0, 0, 0) if tally is None else tally.total()
    return counts


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Note the counts before the fixtures of a test are set up."""
    item.stash[_before] = _counts()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Note what the test has added to the counts, when its fixtures are torn down."""
    try:
        return (yield)
    finally:
        before = item.stash[_before]
        counts = [now - then for now, then in zip(_counts(), before, strict=True)]
        if any(counts):
            # Properties reach the main process also if tests run in several.
            item.user_properties.append((_PROPERTY, " ".join(map(str, counts))))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List tests with redeliveries or expired commits, and failed tests with rebalances."""
    reports = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    failed = {report.nodeid for report in reports if report.failed}
    lines = []
    for report in reports:
        text = dict(report.user_properties).get(_PROPERTY)
        if report.when != "teardown" or not isinstance(text, str):
            continue
        rebalances, *rest = counts = [int(number) for number in text.split()]
        is_wanted = report.nodeid in failed or terminalreporter.config.getoption("--ottla-report")
        if any(rest) or (rebalances and is_wanted):
            lines.append(f"{report.nodeid}: {_in_words(counts)}")
    if lines:
        terminalreporter.section("what Ottla's groups went through")
        for line in lines:
            terminalreporter.line(line)


def _in_words(counts: Sequence[int]) -> str:
    singular = ("rebalance", "redelivery", "expired commit")
    plural = ("rebalances", "redeliveries", "expired commits")
    return ", ".join(
        f"{count} {one if count == 1 else many}"
        for count, one, many in zip(counts, singular, plural, strict=True)
        if count
    )


@pytest.fixture
def ottla_broker() -> Iterator["Broker"]:
    """A running broker with its data in memory; `ottla_broker.bootstrap` is its address."""
    import ottla.testing  # noqa: PLC0415  # Slow, so imported only if a test uses a broker.

    with ottla.testing.Broker() as broker:
        yield broker


@pytest.fixture
def ottla(ottla_broker: "Broker") -> "Broker":
    """Return the broker of `ottla_broker`."""
    return ottla_broker


@pytest.fixture
def ottla_secure_broker() -> Iterator["Broker"]:
    """A broker as `ottla_broker`, with TLS, logins and ACLs; `login` has the clients' settings."""
    import ottla.testing  # noqa: PLC0415  # Slow, so imported only if a test uses a broker.

    with ottla.testing.Broker(secure=True) as broker:
        yield broker
