"""Disks that lose, fill up, or come back with a wrong bit; clocks that jump."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

from chaos.cluster import Cluster
from chaos.faults.fault import Death, DeathOfAll, anyone

_HOUR_S = 3600


@dataclass(slots=True)
class PowerCut(Death):
    """One broker dies and its disk forgets what was not synced."""

    name: str = "power"

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.dead = [anyone(cluster, rng)]
        cluster.members[self.dead[0]].lose_power()
        return f"broker {self.dead[0]} without power"


@dataclass(slots=True)
class PowerCutOfAll(DeathOfAll):
    """Every broker dies, and every disk forgets what was not synced."""

    name: str = "power-all"

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.draw(cluster, rng)
        # The disks first: no broker lives on to notice the death of another.
        dead = [cluster.members[number] for number in self.dead]
        for member in dead:
            member.disk.cut_power()
        for member in dead:
            member.kill()
            member.disk.unmount()
            member.disk.mount()
        return f"all brokers without power, back as {', '.join(map(str, self.dead))}"


@dataclass(slots=True)
class FullDisk:
    """No space is left on one broker's disk; healing gives it back, the process goes on."""

    name: str = "full-disk"
    broken_s: float = 6.0
    hit: int = 0

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.hit = anyone(cluster, rng)
        cluster.members[self.hit].disk.fill()
        return f"disk of broker {self.hit} full"

    def heal(self, cluster: Cluster) -> None:
        cluster.members[self.hit].disk.empty()


@dataclass(slots=True)
class BitFlip(Death):
    """While a killed broker is down, one bit of one of its files turns over."""

    name: str = "bit-flip"

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.dead = [anyone(cluster, rng)]
        member = cluster.members[self.dead[0]]
        member.kill()
        file = rng.choice(_files(member.data, rng))
        position = rng.randrange(file.stat().st_size)
        with file.open("r+b") as opened:
            opened.seek(position)
            (byte,) = opened.read(1)
            opened.seek(position)
            opened.write(bytes([byte ^ 1 << rng.randrange(8)]))
        description = (
            f"broker {member.id} killed, a bit of {file.relative_to(member.data)} turned over"
        )
        return f"{description} at {position} of {file.stat().st_size}"


def _files(data: Path, rng: Random) -> list[Path]:
    """Files of one kind: segments, indexes, or checkpoints."""
    kinds = ("*/*.log", "*/*index", "*checkpoint*")
    found = [[f for f in sorted(data.glob(kind)) if f.stat().st_size] for kind in kinds]
    return rng.choice([files for files in found if files])


@dataclass(slots=True)
class ClockJump:
    """The wall clock of one broker is an hour off; healing sets it right, a jump again."""

    name: str = "clock"
    broken_s: float = 4.0
    hit: int = 0

    def make(self, cluster: Cluster, rng: Random) -> str:
        self.hit = anyone(cluster, rng)
        seconds = rng.choice([-_HOUR_S, _HOUR_S])
        clock = cluster.members[self.hit].clock
        assert clock is not None, "the run was set up without clocks"
        clock.jump(seconds)
        return f"clock of broker {self.hit} off by {seconds} s"

    def heal(self, cluster: Cluster) -> None:
        clock = cluster.members[self.hit].clock
        assert clock is not None
        clock.jump(0)
