"""`ottla mcp` serves read-only tools; the SDK's own client calls them over stdio."""

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from ottla.client.sync import Admin
from ottla.diagnosis.audit_log import audit_lines, verify_audit

from .ottla_command import Command


def ask(run: Command, audit: Path, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Answers of one server, in order; None for a call that failed."""

    async def main() -> list[Any]:
        words = ["-m", "ottla.cli", "mcp", "--bootstrap", run.bootstrap]
        server = StdioServerParameters(
            command=sys.executable,
            args=[*words, "--audit-dir", str(audit)],
            env=dict(run.environment),
        )
        answers: list[Any] = []
        async with Client(server) as client:
            for tool, arguments in calls:
                found = await client.call_tool(tool, arguments)
                text = found.content[0].text if found.content else ""
                answers.append(None if found.is_error else json.loads(text))
        return answers

    return asyncio.run(main())


def test_an_agent_reads_and_plans_and_changes_nothing(
    run: Command, name: str, tmp_path: Path
) -> None:
    """A plan is a command for a person; running it makes the change."""
    run("topic", "create", name, "-s", "retention.ms=7000")
    wanted = {"kind": "topic", "name": name, "settings": {"retention.ms": "1000"}}
    health, topics, described, plan = ask(
        run,
        tmp_path,
        ("cluster_health", {}),
        ("list_topics", {}),
        ("describe_topic", {"topic": name}),
        ("plan_setting", wanted),
    )
    assert health["topic_count"] >= 1
    assert name in topics
    assert described["settings"] == {"retention.ms": "7000"}
    assert plan["preview"] == [{"name": "retention.ms", "now": "7000", "new": "1000"}]
    with Admin(run.bootstrap) as admin:
        found = admin.configs.describe("topic", name, ["retention.ms"])
        assert found["retention.ms"].value == "7000"
    run(*shlex.split(plan["apply_by_hand"])[1:])
    with Admin(run.bootstrap) as admin:
        found = admin.configs.describe("topic", name, ["retention.ms"])
        assert found["retention.ms"].value == "1000"


def test_every_call_is_in_a_chained_audit_log(run: Command, name: str, tmp_path: Path) -> None:
    """Failed calls, too; a second server continues the chain."""
    run("topic", "create", name)
    (ledger, missing) = ask(
        run,
        tmp_path,
        ("ledger", {"topic": name, "partition": 0}),
        ("describe_topic", {"topic": "no-such-topic"}),
    )
    assert ledger is not None
    assert missing is None
    ask(run, tmp_path, ("list_groups", {}))
    lines = [line.fields for line in audit_lines(tmp_path) if line.event == "tool"]
    assert [(line["tool"], line["outcome"]) for line in lines] == [
        ("ledger", "done"),
        ("describe_topic", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("list_groups", "done"),
    ]
    assert lines[0]["arguments"] == {"topic": name, "partition": "0"}
    assert verify_audit(tmp_path).intact


def test_an_agent_asks_why_and_what_if(run: Command, name: str, tmp_path: Path) -> None:
    """On a copy of the cluster's state: the broker keeps running."""
    run("topic", "create", name)
    leader, prediction, undo = ask(
        run,
        tmp_path,
        ("why_leader", {"topic": name, "partition": 0}),
        ("whatif_stop_broker", {"broker_id": 0}),
        ("list_undo", {}),
    )
    assert leader is not None
    assert f"{name}-0" in prediction["offline"]
    assert isinstance(undo, list)
