"""A process that holds a session and an ephemeral node, and says what it sees.

`python -m tests.integration.coordination.member ADDRESS NAME LEASE_MS` prints a line per event:
`ready`, `ids NAME,NAME…` after each change, `expired GENERATION`, `error CLASS`. It obeys lines on
its input: `block SECONDS` keeps its loop from turning, `create PATH` makes a node, `write` makes
nodes under `/written` for ever and says `wrote COUNT` after each.
"""

import asyncio
import itertools
import sys
import time

from ottla.coordination.connect import connect
from ottla.coordination.interface.store import Create, StoreError


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def lines(loop):
    """What is written to us, line by line."""
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode().split()


async def main(address: str, name: str, lease_ms: int) -> None:
    loop = asyncio.get_running_loop()
    store = await connect(address)
    await store.ensure("/ids")
    tasks = set()

    async def show() -> None:
        try:
            say("ids", ",".join(await store.children("/ids")))
        except StoreError as error:
            say("error", type(error).__name__)

    def look() -> None:
        task = loop.create_task(show())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def enter() -> None:
        session = await store.open_session(lease_ms)
        await store.multi([Create(f"/ids/{name}", b"", session)])

        def gone() -> None:
            say("expired", session.generation)
            task = loop.create_task(enter())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        session.on_expired(gone)

    store.watch_children("/ids", look)
    await enter()
    say("ready")
    async for command, *arguments in lines(loop):
        if command == "block":
            time.sleep(float(arguments[0]))  # noqa: ASYNC251 That is the point.
        elif command == "create":
            await store.ensure(arguments[0])
        elif command == "write":
            await store.ensure("/written")
            for count in itertools.count(1):
                await store.multi([Create("/written/n-", b"", sequential=True)])
                say("wrote", count)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
