"""`ottla mcp`: serves read-only tools about a cluster to agents, over standard input and output."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ottla.base.clock import current_clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import iso
from ottla.broker.audit.files import AuditFiles, AuditLimits
from ottla.cli.common import options
from ottla.cli.common.connect import reach
from ottla.client.admin import Admin
from ottla.client.connection.cluster import connections_of
from ottla.security.audit.chain import Event, bounded
from ottla.storage.disk.filesystem import OsFileSystem

_LIMITS = AuditLimits(16 << 20, -1)
# Servers that write into the same folder at once.
_SERVERS_MAX = 100


def _audit_folder(given: str | None) -> str:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return str(Path(given or f"{state}/ottla/mcp").absolute())


def _open_audit(folder: str, bootstrap: str) -> tuple[AuditFiles, Callable[[Event], Event]]:
    """Open an audit log that no other server writes to; also return what adds time and server.

    Raises OttlaError.
    """

    def stamp(event: Event) -> Event:
        time = iso(current_clock().now_ms())
        return {"time": time, "broker": number, "bootstrap": bootstrap, **event}

    for number in range(_SERVERS_MAX):
        files = AuditFiles(OsFileSystem(), folder, number, _LIMITS, stamp)
        try:
            files.open()
        except OttlaError as error:
            if error.code is not ErrorCode.INVALID_CONFIG:
                raise
            continue
        return files, stamp
    raise OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"{_SERVERS_MAX} servers write their audit logs to {folder}: stop some, or name another "
        "folder with --audit-dir",
    )


@click.command()
@options.bootstrap
@click.option("--audit-dir", metavar="DIR", help="Where calls are logged; ~/.local/state/ottla/mcp")
def mcp(bootstrap: str, audit_dir: str | None) -> None:
    """Let an agent look at a cluster: an MCP server on standard input and output.

    \b
    ottla mcp
    ottla mcp --bootstrap kafka:9093 --config agent.properties

    Its tools are read-only: health, topics, groups with lag, causes of elections and rebalances,
    ledgers, what-ifs, and what can be undone. For a change, a tool returns the command that a
    person may run, and a preview. Every call is a line of a chained audit log; `ottla audit
    verify DIR` checks it. Give the agent a user of its own with DESCRIBE and DESCRIBE_CONFIGS.
    """  # noqa: D301
    try:
        from ottla.cli.mcp.tools import AgentTools  # noqa: PLC0415  # An extra.
    except ImportError as error:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"the MCP server needs a library that is missing, {error.name}: "
            "pip install 'ottla[mcp]'",
        ) from None
    files, stamp = _open_audit(_audit_folder(audit_dir), bootstrap)

    async def audit(tool: str, arguments: Mapping[str, Any], outcome: str) -> None:
        shown = {name: bounded(str(value)) for name, value in arguments.items()}
        event: Event = {"event": "tool", "tool": tool, "arguments": shown, "outcome": outcome}

        def write() -> None:
            files.append([stamp(event)])
            files.sync()

        await asyncio.to_thread(write)

    async def serve() -> None:
        async with Admin(bootstrap, client_id="ottla-mcp") as admin:
            await reach(connections_of(admin))
            await AgentTools(admin, bootstrap, audit).server.run_stdio_async()

    try:
        asyncio.run(serve())
    finally:
        files.close()
