"""Describes effects of changes to a topic, and contradictions of its settings. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ottla.base.settings import TOPIC_SETTINGS
from ottla.base.settings.check import LOOKED_AT, Oddity, oddities


def away_sentence(away: Sequence[int], least: int, settings: Mapping[str, str | None]) -> str:
    """Describe the effect of brokers with replicas of the topic being down (`away`).

    `least` is the number of live replicas of the partition that has the fewest.
    """
    some = len(away) > 1
    named = ("brokers " if some else "broker ") + ", ".join(map(str, away))
    wanted = int(settings.get("min.insync.replicas") or 1)
    writable = (
        ""
        if least >= wanted
        else f" Until then acks=all is refused where fewer than {wanted} replicas are alive "
        "(min.insync.replicas)."
    )
    return (
        f"{named} {'are' if some else 'is'} down: replicas placed there are not in sync, and catch "
        f"up when {'they are' if some else 'it is'} back.{writable}"
    )


def notes(
    replicas: int, settings: Mapping[str, str | None], changed: Collection[str] | None = None
) -> list[str]:
    """Describe contradictions between a topic's effective settings, a sentence each.

    With `changed`, return only contradictions that involve one of these settings. A check is
    skipped if the broker did not send all the settings that it compares.
    """
    return [
        oddity.sentence
        for oddity in _oddities(replicas, settings)
        if changed is None or not set(oddity.names).isdisjoint(changed)
    ]


def after_growth(name: str, before: int, after: int) -> str:
    """Describe the effect of a larger number of partitions."""
    if after == before:
        return f"{name} has {after} partitions already."
    return (
        f"{name} has {after} partitions now, {before} before. Keys are placed anew: records of a "
        "key written from now on may lie in another partition than its earlier ones, so that "
        "their order is no longer kept across this change. It cannot be taken back."
    )


def _oddities(replicas: int, settings: Mapping[str, str | None]) -> Iterable[Oddity]:
    values: dict[str, object] = {}
    for name in LOOKED_AT:
        text = settings.get(name)
        if text is None:
            return []
        values[name] = TOPIC_SETTINGS[name].parse(text)
    return oddities(values, replicas)
