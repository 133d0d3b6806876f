from ottla.base.fairness import fair_share


def test_an_owner_has_a_quarter_and_at_least_one():
    assert [fair_share(whole) for whole in (1, 3, 4, 7, 8, 100)] == [1, 1, 1, 1, 2, 25]
