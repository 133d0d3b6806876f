"""Runs Kafka's Java tools one after another in one JVM, for starting a JVM costs a second each.

The JVM is reached through Py4J, which PySpark brings along; `jvm` gives Java's own client
classes to tests that want them.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig.jars import KAFKA, class_path
from rig.java import java

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
VERIFIABLE_SHARE_CONSUMER = "org.apache.kafka.tools.VerifiableShareConsumer"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
GROUPS_OF_ALL_KINDS = "org.apache.kafka.tools.GroupsCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
DELEGATION_TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"


class _ExitCalledError(Exception):
    """What a tool meets instead of the end of the JVM."""


@dataclass(slots=True)
class _ExitRecorder:
    """Stands in Java for the procedure that ends the JVM, and remembers the first exit code."""

    codes: list[int] = field(default_factory=list)

    def execute(self, code: int, message: str | None) -> None:
        self.codes.append(code)
        raise _ExitCalledError(f"exit {code}: {message}")

    class Java:
        """Py4J reads here which interface this object has in Java."""

        implements = ("org.apache.kafka.common.utils.Exit$Procedure",)


@dataclass(slots=True)
class _HookRecorder:
    """Keeps what a tool wants done at the end of the JVM, to do it at the end of the tool."""

    hooks: list[Any] = field(default_factory=list)

    def addShutdownHook(self, name: str, runnable: Any) -> None:  # noqa: ARG002, N802  Java's.
        self.hooks.append(runnable)

    class Java:
        """Py4J reads here which interface this object has in Java."""

        implements = ("org.apache.kafka.common.utils.Exit$ShutdownHookAdder",)


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run of a tool printed, and its exit code."""

    tool: str
    exit_code: int
    out: str
    err: str

    def lines(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.strip()]

    def ok(self) -> str:
        """What it printed; AssertionError with all its words if it failed."""
        assert self.exit_code == 0, (
            f"{self.tool} ended with {self.exit_code}:\n{self.out}{self.err}"
        )
        return self.out


class Tools:
    """A JVM that holds Kafka's tools and clients."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._recorder = _ExitRecorder()
        self._hooks = _HookRecorder()
        self.jvm: Any = gateway.jvm
        ending = self.jvm.org.apache.kafka.common.utils.Exit
        ending.setExitProcedure(self._recorder)
        ending.setShutdownHookAdder(self._hooks)

    def strings(self, arguments: Sequence[object]) -> Any:
        """A Java `String[]`."""
        array = self._gateway.new_array(self.jvm.java.lang.String, len(arguments))
        for index, argument in enumerate(arguments):
            array[index] = str(argument)
        return array

    def run(self, tool: str, *arguments: object, stdin: bytes = b"") -> Ran:
        """Call a tool's `main` in the JVM: one at a time, for its streams are the JVM's."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415  Comes with Spark, untyped.

        java_io, system = self.jvm.java.io, self.jvm.java.lang.System
        streams = (system.out, system.err, getattr(system, "in"))
        out, err = java_io.ByteArrayOutputStream(), java_io.ByteArrayOutputStream()
        system.setOut(java_io.PrintStream(out, True))
        system.setErr(java_io.PrintStream(err, True))
        system.setIn(java_io.ByteArrayInputStream(stdin))
        self._recorder.codes.clear()
        self._hooks.hooks.clear()
        failure = ""
        try:
            main = self.jvm
            for name in tool.split("."):
                main = getattr(main, name)
            main.main(self.strings(arguments))
        except Py4JJavaError as error:
            if not self._recorder.codes:
                self._recorder.codes.append(1)
                failure = str(error)
        except BaseException as interrupted:
            # A test's time limit: the tool has not come back.
            said = f"{out.toString()}{err.toString()}"
            interrupted.add_note(f"{tool} {arguments} is at {self._stack()}\nand printed: {said}")
            raise
        finally:
            for hook in self._hooks.hooks:
                hook.run()
            system.setOut(streams[0])
            system.setErr(streams[1])
            system.setIn(streams[2])
        code = self._recorder.codes[0] if self._recorder.codes else 0
        return Ran(tool, code, out.toString(), err.toString() + failure)

    def _stack(self) -> str:
        """Where the threads of the JVM stand that came from here."""
        stacks = self.jvm.java.lang.Thread.getAllStackTraces()
        return "\n".join(
            f"{thread.getName()}:\n  " + "\n  ".join(str(frame) for frame in stacks[thread])
            for thread in stacks
            if thread.getName().startswith("Thread-")
        )


@contextlib.contextmanager
def tools() -> Iterator[Tools]:
    """Start the JVM and end it afterwards."""
    from py4j.java_gateway import (  # type: ignore[import-untyped]  # noqa: PLC0415  Comes with Spark, untyped.
        CallbackServerParameters,
        GatewayParameters,
        JavaGateway,
        launch_gateway,
    )

    # Every tool ends by an exception of ours, which Py4J would log as an error.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    port, process = launch_gateway(
        classpath=class_path(KAFKA),
        java_path=str(java()),
        javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"],
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(
            port=port, auto_convert=True, enable_memory_management=False
        ),
        callback_server_parameters=CallbackServerParameters(port=0),
    )
    try:
        callback_port = gateway.get_callback_server().get_listening_port()
        callback_address = gateway.java_gateway_server.getCallbackClient().getAddress()
        gateway.java_gateway_server.resetCallbackClient(callback_address, callback_port)
        yield Tools(gateway)
    finally:
        gateway.shutdown()
        process.kill()
        process.wait()


def command(tool: str, *arguments: object) -> list[str | Path]:
    """The command line of a tool in a JVM of its own, for those that run long or are measured."""
    return [java(), "-Xmx1g", "-cp", class_path(KAFKA), tool, *map(str, arguments)]


def main() -> int:
    """`python -m rig.tools CLASS ARGUMENTS…` runs one tool."""
    with tools() as jvm:
        ran = jvm.run(sys.argv[1], *sys.argv[2:], stdin=b"")
    print(ran.out, end="")
    print(ran.err, end="", file=sys.stderr)
    return ran.exit_code


if __name__ == "__main__":
    sys.exit(main())
