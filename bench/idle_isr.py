"""The first record after a quiet time, while all followers stand still for a moment.

Topics of three replicas idle together for longer than `replica.lag.time.max.ms`, with default
settings; then, for one after the other, the brokers that do not lead it stand still (SIGSTOP) for
1 s, and one record is sent with acks=all and no retries. It must be acknowledged when they are
back, with three in sync throughout, whatever `min.insync.replicas` is.
"""

import time

from confluent_kafka.admin import NewTopic

from bench.clusters import REPLICAS, admin, each_alone
from bench.figures import AT_MOST, Figure, Scale, spread
from rig.clusters import Cluster
from rig.idle_record import FirstRecord, Sender

_IDLE_S = 33.0
_PAUSE_S = 1.0
# Between two pauses, so that each finds brokers that have told their store that they live.
_BETWEEN_S = 2.0
_MINIMUMS = (1, 2)


def measure(scale: Scale) -> list[Figure]:
    rounds = scale.pick(10, 2)
    idle_s = _IDLE_S if not scale.quick else 3.0
    results = each_alone(lambda cluster: _measure(cluster, rounds, idle_s))
    figures: list[Figure] = []
    for minimum in _MINIMUMS:
        what = f"idle {idle_s:.0f} s, followers paused 1 s, min.insync.replicas {minimum}"
        for side, (measured,) in results.items():
            found = measured[minimum]
            bound = 0.0 if side == "ottla" else None
            name = f"{what}: {side}"
            wrong = sum(1 for each in found if each.is_early or each.error is not None)
            shrunk = sum(1 for each in found if each.least_in_sync < REPLICAS)
            errors = sorted({each.error for each in found if each.error is not None})
            times = [each.answered_ms for each in found]
            note = f"of {len(found)}; answered after {spread(times)} ms {' '.join(errors)}".rstrip()
            figures.append(Figure(f"{name}: early or failed", wrong, "", AT_MOST, bound, note))
            figures.append(Figure(f"{name}: ISR shrunk", shrunk, "", AT_MOST, bound))
    return figures


def _measure(cluster: Cluster, rounds: int, idle_s: float) -> dict[int, list[FirstRecord]]:
    topics = {
        minimum: [f"idle-{minimum}-{number}" for number in range(rounds)] for minimum in _MINIMUMS
    }
    client = admin(cluster)
    new = [
        NewTopic(name, 1, REPLICAS, config={"min.insync.replicas": str(minimum)})
        for minimum, names in topics.items()
        for name in names
    ]
    for made in client.create_topics(new).values():
        made.result(60)
    sender = Sender(cluster)
    for each in new:
        cluster.wait_until_in_sync(each.topic)
        sender.send(each.topic)
    time.sleep(idle_s)
    results: dict[int, list[FirstRecord]] = {}
    for minimum, names in topics.items():
        for name in names:
            time.sleep(_BETWEEN_S)
            found = sender.send_with_followers_paused(name, _PAUSE_S)
            print(f"   {cluster.name:<6} min {minimum}: {found}", flush=True)
            results.setdefault(minimum, []).append(found)
    return results
