"""Who may work where few may at a time."""

from ottla.broker.runtime.turns import FairTurns


def test_a_place_that_is_given_back_goes_to_the_user_whose_turn_it_is():
    """Not to the one who has asked most often."""
    turns, called = FairTurns(1, 1), []
    assert turns.take("a", 1, lambda: called.append(1))
    for who in (2, 3):
        assert not turns.take("a", who, lambda who=who: called.append(who))
    for who in (4, 5):
        assert not turns.take("b", who, lambda who=who: called.append(who))
    for who in (1, 2, 4, 3, 5):
        turns.leave(who)
    assert called == [2, 4, 3, 5]
    assert turns.take("c", 6, lambda: None)


def test_one_user_does_not_take_all_places():
    """Of three places two; the third is another user's at once."""
    turns, called = FairTurns(3, 2), []
    assert [turns.take("a", who, lambda: called.append("a")) for who in range(3)] == [
        True,
        True,
        False,
    ]
    assert turns.take("b", 7, lambda: None)
    turns.leave(7)
    assert called == []
    turns.leave(0)
    assert called == ["a"]


def test_a_place_is_kept_until_it_is_given_back():
    """Who was called has it, and asks again as often as it likes."""
    turns = FairTurns(1, 1)
    assert turns.take("a", 1, lambda: None)
    assert not turns.take("b", 2, lambda: None)
    turns.leave(1)
    assert turns.take("b", 2, lambda: None)
    assert not turns.take("c", 3, lambda: None)


def test_who_waits_no_longer_is_not_called():
    """Its connection has ended; giving up twice does nothing."""
    turns, called = FairTurns(1, 1), []
    assert turns.take("a", 1, lambda: None)
    assert not turns.take("b", 2, lambda: called.append(2))
    turns.leave(2)
    turns.leave(2)
    turns.leave(1)
    assert called == []
    assert turns.take("c", 3, lambda: None)
