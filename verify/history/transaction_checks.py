"""Laws of transactions: all or nothing, nothing before its time, no circles of information."""

from collections.abc import Iterator

from verify.history.anomaly import Anomaly
from verify.history.evidence import Evidence
from verify.history.operation import Operation


def precommitted_reads(evidence: Evidence) -> Iterator[Anomaly]:
    """A transaction reads what it has written itself and not committed yet."""
    for operation in evidence.operations:
        if operation.f != "txn" or not operation.committed:
            continue
        own: set[str] = set()
        for step in operation.steps:
            if step.f == "send":
                own.add(step.value)
            elif step.value in own:
                told = f"{operation.process} read its own {step.value!r} before committing it"
                yield Anomaly("precommitted-read", step.partition, told)


def torn_transactions(evidence: Evidence) -> Iterator[Anomaly]:
    """Of a transaction whose end is not known, a part is there in the end and a part is not."""
    for operation in evidence.operations:
        if operation.f != "txn" or operation.outcome != "info":
            continue
        there: list[str] = []
        missing: list[str] = []
        for step in operation.sends:
            partition = evidence.partitions.get(step.partition)
            if partition is None or partition.final is None:
                continue
            offsets = partition.offsets.get(step.value, {})
            stands = any(partition.final.get(offset) == step.value for offset in offsets)
            (there if stands else missing).append(step.value)
        if there and missing:
            told = f"of one transaction of {operation.process}, {there[0]!r} is there"
            yield Anomaly("torn-transaction", "", f"{told} and {missing[0]!r} is not")


def circles(evidence: Evidence) -> Iterator[Anomaly]:
    """Transactions that have each read what a later one in the circle wrote (G1c)."""
    transactions = [o for o in evidence.operations if o.f == "txn" and o.outcome != "fail"]
    number_of = {id(operation): number for number, operation in enumerate(transactions)}
    readers: list[list[int]] = [[] for _ in transactions]
    for number, operation in enumerate(transactions):
        for step in operation.polls:
            writer = evidence.senders.get(step.value)
            source = None if writer is None else number_of.get(id(writer))
            if source is not None and source != number:
                readers[source].append(number)
    for circle in _components(readers):
        told = " → ".join(_name(transactions[number]) for number in circle)
        yield Anomaly("G1c", "", f"information goes in a circle: {told}")


def _name(operation: Operation) -> str:
    return f"{operation.process} at {operation.begin_s:.3f} s"


def _unstack(stack: list[int], bottom: int) -> list[int]:
    """Take everything down to `bottom` off the stack."""
    taken = [stack.pop()]
    while taken[-1] != bottom:
        taken.append(stack.pop())
    return taken


def _components(graph: list[list[int]]) -> Iterator[list[int]]:
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    standing: set[int] = set()
    for root in range(len(graph)):
        if root in index:
            continue
        work = [(root, 0)]
        while work:
            node, position = work.pop()
            if position == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                standing.add(node)
            descended = False
            for place in range(position, len(graph[node])):
                target = graph[node][place]
                if target not in index:
                    work += [(node, place + 1), (target, 0)]
                    descended = True
                    break
                if target in standing:
                    low[node] = min(low[node], index[target])
            if descended:
                continue
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
            if low[node] == index[node]:
                component = _unstack(stack, node)
                standing.difference_update(component)
                if len(component) > 1:
                    yield component
