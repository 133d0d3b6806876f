"""Which ACLs each verb of the lake needs, as secure-loads.md has them; without Spark."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from rig.secured import Secured, secured

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.cli.command import cli
from ottla.client import sync
from ottla.lake import run_here
from ottla.lake.edges.pipeline_file import Pipeline
from ottla.lake.edges.planned_load import look
from ottla.lake.edges.status import status
from ottla.lake.write.dead_letters import redrive_table

USER = "loader"
# Valid JSON, and two records that become dead letters.
VALUES = (b'{"n":1}', b"x", b'{"n":2}', b"y")


class Rule(NamedTuple):
    operation: str
    resource: str
    prefixed: bool = False


# Of the topic that is read, of one that is written, and of what the lake's own ids begin with.
READS = (Rule("read", "topic:flights"), Rule("describe-configs", "topic:flights"))
WRITES = (
    Rule("write", "topic:into"),
    Rule("read", "topic:into"),
    Rule("write", "transactional-id:ottla-", True),
    Rule("read", "group:ottla-", True),
)
BACK = (Rule("write", "topic:flights"), Rule("read", "topic:flights"), *WRITES[2:])
GROUP = Rule("read", "group:lake")


@pytest.fixture(scope="module")
def broker() -> Iterator[Secured]:
    with secured({USER: "the-secret-of-loads"}) as running:
        for name in ("flights", "into"):
            running.create_topic(name)
        with sync.Producer(running.node.bootstrap) as producer:
            for value in VALUES:
                producer.send("flights", value, b"k")
        yield running


class Verbs:
    """Each verb once, into places of its own, by the settings of the user."""

    def __init__(self, broker: Secured, folder: Path) -> None:
        self._bootstrap = broker.sasl
        self._folder = folder
        self._made = 0
        self.table = str(folder / "table")

    def _new(self) -> str:
        self._made += 1
        return str(self._folder / f"new-{self._made}")

    def load(self, target: str | None = None) -> None:
        json = ottla.lake.decode_from({"value": "json", "on_bad_record": "dead-letter"})
        ottla.lake.load(
            "flights",
            target or self._new(),
            bootstrap=self._bootstrap,
            decode=json,
            runner=run_here,
        )

    def load_with_group(self) -> None:
        ottla.lake.load(
            "flights", self._new(), bootstrap=self._bootstrap, group="lake", runner=run_here
        )

    def follow(self) -> None:
        ottla.lake.follow(
            "flights", self._new(), bootstrap=self._bootstrap, once=True, runner=run_here
        )

    def changelog(self) -> None:
        ottla.lake.changelog(
            "flights", self._new(), bootstrap=self._bootstrap, kind="latest", runner=run_here
        )

    def read(self) -> None:
        assert ottla.lake.topic("flights", bootstrap=self._bootstrap).to_arrow().num_rows == 4

    def plan(self) -> None:
        look(Pipeline("flights", self.table, {"bootstrap": self._bootstrap}))

    def status(self) -> None:
        assert status(self.table, self._bootstrap).rows == 2

    def verify(self) -> None:
        assert ottla.lake.verify(self.table, bootstrap=self._bootstrap).problems == []

    def publish(self) -> None:
        ottla.lake.publish(self.table, "into", bootstrap=self._bootstrap, name=self._new())

    def redrive(self) -> None:
        asyncio.run(redrive_table(self._bootstrap, self.table, lambda _letter: True, again=True))


NEEDS = {
    "load": READS,
    "load_with_group": (*READS, GROUP),
    "follow": READS,
    "changelog": READS,
    "read": READS,
    "plan": READS,
    "status": READS,
    "verify": READS,
    "publish": WRITES,
    "redrive": BACK,
}


@pytest.fixture(scope="module")
def verbs(broker: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verbs]:
    folder = tmp_path_factory.mktemp("acls")
    config = broker.write_config(folder / "client.properties", USER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTTLA_CONFIG", str(config))
        made = Verbs(broker, folder)
        with allowed(broker, READS):
            made.load(made.table)
        yield made


class allowed:  # noqa: N801  # Used as a context.
    """The user has these ACLs for as long as the block lasts."""

    def __init__(self, broker: Secured, rules: tuple[Rule, ...]) -> None:
        self._broker, self._rules = broker, rules

    def __enter__(self) -> None:
        for rule in self._rules:
            self._broker.allow(USER, rule.operation, rule.resource, prefixed=rule.prefixed)

    def __exit__(self, *_: object) -> None:
        for rule in self._rules:
            self._broker.withdraw(USER, rule.operation, rule.resource, prefixed=rule.prefixed)


@pytest.mark.parametrize("verb", NEEDS)
def test_a_verb_needs_these_acls_and_names_the_one_that_is_missing(
    broker: Secured, verbs: Verbs, verb: str
) -> None:
    """Each is left out once: the error has the command that adds it."""
    run: Callable[[], None] = getattr(verbs, verb)
    needed = NEEDS[verb]
    for missing in needed:
        rest = tuple(rule for rule in needed if rule != missing)
        with allowed(broker, rest), pytest.raises(OttlaError) as error:
            run()
        # READ and WRITE include DESCRIBE, which some requests ask for first.
        operations = {missing.operation, "describe"}
        names = {"NAME", USER}  # Producers and groups do not know what the broker makes of a login.
        commands = [
            f"ottla acl add User:{name} {one} {missing.resource}"
            for name in names
            for one in operations
        ]
        assert any(one in error.value.message for one in commands), (missing, error.value.message)
    with allowed(broker, needed):
        run()


def test_a_pipeline_names_the_settings_of_clients(
    broker: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file beside it, with the authority's certificate beside that; no option and no variable."""
    monkeypatch.delenv("OTTLA_CONFIG", raising=False)
    config = broker.write_config(tmp_path / "client.properties", USER)
    shutil.copy(broker.files.authority, tmp_path / "authority.pem")
    text = config.read_text().replace(str(broker.files.authority), "authority.pem")
    config.write_text(text)
    path = tmp_path / "flights.toml"
    path.write_text(
        f'[source]\ntopic = "flights"\nbootstrap = "{broker.sasl}"\nconfig = "client.properties"\n'
        '[target]\ntable = "table"\n[spark]\nmaster = "here"\n'
    )
    with allowed(broker, READS):
        for verb in ("plan", "run", "status", "verify"):
            words = ["lake", verb, str(path if verb != "verify" else tmp_path / "table")]
            if verb == "verify":
                words += ["--bootstrap", broker.sasl, "--config", str(config)]
            done = CliRunner().invoke(cli, words, catch_exceptions=False)
            assert done.exit_code == 0, done.output
    monkeypatch.delenv("OTTLA_CONFIG")
