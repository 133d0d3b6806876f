"""One run, step by step: messages that arrived or were lost, and their effects."""

from verify.walk import profile
from verify.walk.messages import Message
from verify.walk.node import WalkNode
from verify.walk.violation import Violation
from verify.walk.walk import Draw, ReplicaWalk
from verify.walk.world import SHIPPED, Build, WalkWorld


class TracedWorld(WalkWorld):
    """Writes down what the network does."""

    lines: list[str]

    def deliver(self, message: Message) -> None:
        self.lines.append(f"    arrives {message}")
        super().deliver(message)

    def lose(self, message: Message) -> None:
        self.lines.append(f"    lost    {message}")
        super().lose(message)


def trace(seed: int, steps: int, build: Build = SHIPPED, draw: Draw = profile.draw) -> list[str]:
    """A line for each event of a run, and what it changed below it; the violation last."""
    run = ReplicaWalk(seed, build, draw=draw)
    world = run.world
    world.__class__ = TracedWorld
    assert isinstance(world, TracedWorld)
    lines = world.lines = [str(run.profile)]
    try:
        for _ in range(steps):
            before = _looks(run)
            try:
                name = run.step()
                lines.append(f"{run.taken:>6} {name}")
            finally:
                lines += [f"       {now}" for now in _looks(run) if now not in before]
        run.world.committed.check_all()
    except Violation as violation:
        lines.append(f"{run.taken:>6} VIOLATION {violation}")
    return lines


def _looks(run: ReplicaWalk) -> list[str]:
    """The store and each broker, in a line each."""
    world = run.world
    return [f"store {world.store.state}", *(_look(node) for node in world.nodes.values())]


def _look(node: WalkNode) -> str:
    role = type(node.role).__name__ if node.up else "down"
    epochs = "".join(str(epoch) if epoch >= 0 else "." for epoch, _ in node.log.records)
    return (
        f"broker {node.id} ({node.registration.broker_epoch}) {role} epoch {node.leader_epoch} "
        f"start {node.log.log_start_offset} high watermark {node.high_watermark} log [{epochs}]"
    )
