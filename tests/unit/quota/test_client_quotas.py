"""Use is counted by who shares a quota, not by connection."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.metadata.quota_entity import DEFAULT, QuotaEntity
from ottla.quota.client_quotas import ClientQuotas, Windows
from ottla.quota.rates import TokenBucket
from ottla.quota.table import Limits, QuotaKey, QuotaTable

PRODUCE = QuotaKey.PRODUCE


def quotas(limits: dict[QuotaEntity, Limits], windows: Windows | None = None) -> ClientQuotas:
    made = ClientQuotas(windows or Windows(), Windows())
    made.table = QuotaTable(limits)
    return made


def test_clients_of_one_user_share_the_quota_of_the_user() -> None:
    """A new client id brings nothing: the third waits for what the first two used."""
    shared = quotas({QuotaEntity("u"): {PRODUCE: 100.0}})

    assert shared.use(PRODUCE, "u", "a", 100, 0) == 0
    assert shared.use(PRODUCE, "u", "b", 100, 0) == 1000
    assert shared.use(PRODUCE, "u", "c", 0, 0) == 1000
    assert len(shared) == 1


def test_clients_with_a_quota_each_do_not_disturb_each_other() -> None:
    """The default for client ids counts each id by itself."""
    each = quotas({QuotaEntity(client_id=DEFAULT): {PRODUCE: 100.0}})

    assert each.use(PRODUCE, "u", "a", 500, 0) == 4000
    assert each.use(PRODUCE, "u", "b", 100, 0) == 0


def test_who_has_no_quota_waits_for_nothing_and_is_not_remembered() -> None:
    """Neither for another key."""
    some = quotas({QuotaEntity("u"): {PRODUCE: 1.0}})

    assert some.use(PRODUCE, "v", "a", 10**9, 0) == 0
    assert some.use(QuotaKey.FETCH, "u", "a", 10**9, 0) == 0
    assert len(some) == 0


def test_a_changed_quota_holds_at_once() -> None:
    """What was used under the old one is forgotten."""
    changing = quotas({QuotaEntity("u"): {PRODUCE: 1.0}})
    assert changing.use(PRODUCE, "u", "a", 1000, 0) == 999_000
    changing.table = changing.table.with_limits(QuotaEntity("u"), {PRODUCE: 500.0})
    assert changing.use(PRODUCE, "u", "a", 1000, 0) == 1000
    changing.table = changing.table.with_limits(QuotaEntity("u"), {})
    assert changing.use(PRODUCE, "u", "a", 10**9, 0) == 0


def test_request_time_is_in_percent_of_one_thread() -> None:
    """50 ms of work at 10 %: half a second's worth; 150 ms: half a second to wait."""
    timed = quotas({QuotaEntity("u"): {QuotaKey.REQUEST: 10.0}})

    assert timed.use(QuotaKey.REQUEST, "u", "a", 50, 0) == 0
    assert timed.use(QuotaKey.REQUEST, "u", "a", 100, 0) == 500


def test_connections_are_counted_by_address() -> None:
    """Two a second: the third comes half a second too early."""
    addresses = quotas({QuotaEntity(ip=DEFAULT): {QuotaKey.CONNECTION: 2.0}})

    assert [addresses.connect("10.0.0.1", 0) for _ in range(3)] == [0, 0, 500]
    assert addresses.connect("10.0.0.2", 0) == 0


def test_thousands_of_client_ids_are_not_remembered_for_ever() -> None:
    """Those at rest are forgotten; those that still have to wait are not."""
    each = quotas({QuotaEntity(client_id=DEFAULT): {PRODUCE: 100.0}})
    each.use(PRODUCE, "u", "greedy", 100_000_000, 0)
    for number in range(50_000):
        each.use(PRODUCE, "u", f"client-{number}", 1, number * 100)

    assert len(each) < 2000
    assert each.use(PRODUCE, "u", "greedy", 0, 0) > 0


def test_the_papers_thirty_windows_hold_the_same_rate() -> None:
    """30 windows of a second: a minute of a busy client is a minute's worth."""
    paper = quotas({QuotaEntity(client_id="c"): {PRODUCE: 1000.0}}, Windows(30, 1000))
    now_ms = total = 0
    while now_ms < 60_000:
        total += 700
        now_ms += paper.use(PRODUCE, "u", "c", 700, now_ms)

    assert 57_000 <= total <= 63_000


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 40)), min_size=1, max_size=400))
def test_a_hundred_connections_get_what_one_gets(uses: list[tuple[int, int]]) -> None:
    """Random client ids, one user: the sum stays at the limit and one request of each."""
    shared = quotas({QuotaEntity("u"): {PRODUCE: 100.0}})
    ready_ms = [0] * 100
    total = now_ms = 0
    for connection, amount in uses:
        now_ms = max(now_ms, ready_ms[connection])
        total += amount
        wait_ms = shared.use(PRODUCE, "u", f"id-{connection}-{total}", amount, now_ms)
        ready_ms[connection] = now_ms + wait_ms

        assert total <= 100 * (now_ms / 1000 + 1) + 100 * 40


def test_a_bucket_is_full_at_first_and_may_be_overdrawn() -> None:
    """Two partitions a second, eleven seconds in advance; a large topic is paid for afterwards."""
    bucket = TokenBucket(2.0, burst_s=11, now_ms=5000)

    assert bucket.record(22, 5000) == 0
    assert bucket.record(10, 5000) == 5000
    assert bucket.wait_ms(9000) == 1000
    assert bucket.wait_ms(10_000) == 0
    assert not bucket.at_rest(20_999)
    assert bucket.at_rest(21_000)


def test_changes_of_topics_have_a_bucket_for_each_who_shares_it() -> None:
    """The same one each time, until the limit is another; none where there is no limit."""
    changes = quotas({QuotaEntity("u"): {QuotaKey.MUTATION: 1.0}})
    bucket = changes.bucket("u", "a", 0)

    assert bucket is not None
    assert changes.bucket("u", "b", 0) is bucket
    assert changes.bucket("v", "a", 0) is None
    changes.table = changes.table.with_limits(QuotaEntity("u"), {QuotaKey.MUTATION: 2.0})
    assert changes.bucket("u", "a", 0) is not bucket
