"""Explains the effect of a topic's settings on its records, in sentences. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from ottla.base.quantities import counted, size_words, span_words
from ottla.base.settings import TOPIC_SETTINGS
from ottla.base.settings.check import LOOKED_AT, Oddity, oddities


def after_creation(partitions: int, replicas: int, settings: Mapping[str, str | None]) -> str:
    """Describe the guarantees of a topic with these settings, and their limits."""
    least_in_sync = int(settings.get("min.insync.replicas") or 1)
    return (
        f"{counted(partitions, 'partition')}, {_copies(replicas, least_in_sync)} {_kept(settings)}"
    )


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


def _copies(replicas: int, least_in_sync: int) -> str:
    if replicas == 1:
        return (
            "one copy of each: while the broker that has it is down it can be neither read nor "
            "written, and what that disk loses is lost."
        )
    spare = replicas - least_in_sync
    writable = (
        f"with {counted(spare, 'broker')} down"
        if spare > 0
        else "only while all of them are in sync"
    )
    safe = least_in_sync - 1
    survives = (
        f"survives the loss of {counted(safe, 'disk')}"
        if safe
        else "may stand on one disk alone (min.insync.replicas=1)"
    )
    return (
        f"{replicas} copies of each: writable {writable}; a record acknowledged with acks=all "
        f"{survives}."
    )


def _kept(settings: Mapping[str, str | None]) -> str:
    policies = {part for part in (settings.get("cleanup.policy") or "").split(",") if part}
    sentences: list[str] = []
    if "compact" in policies:
        sentences.append("Of each key the last record is kept, so every record needs a key.")
    if "delete" in policies:
        limits = [limit for limit in (_age(settings), _size(settings)) if limit]
        if limits:
            sentences.append(f"Records are deleted {' or '.join(limits)}.")
    if not sentences:
        sentences.append("Records are kept until DeleteRecords or the topic's deletion.")
    return " ".join(sentences)


def _age(settings: Mapping[str, str | None]) -> str:
    kept_ms = int(settings.get("retention.ms") or -1)
    return f"after {span_words(kept_ms)}" if kept_ms >= 0 else ""


def _size(settings: Mapping[str, str | None]) -> str:
    kept_bytes = int(settings.get("retention.bytes") or -1)
    return f"once a partition exceeds {size_words(kept_bytes)}" if kept_bytes >= 0 else ""
