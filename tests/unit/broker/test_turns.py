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


def test_who_steps_aside_lets_others_in_and_comes_back_before_new_ones():
    """Its user has no more places meanwhile than before."""
    turns, called = FairTurns(1, 1, begun=2), []
    assert turns.take("a", 1, lambda: None)
    assert not turns.take("a", 2, lambda: called.append(2))
    assert not turns.take("b", 3, lambda: called.append(3))
    assert not turns.take("c", 4, lambda: called.append(4))
    turns.step_aside(1)
    assert called == [3]
    turns.come_back(1, lambda: called.append(1))
    assert called == [3]
    turns.leave(3)
    assert called == [3, 1]
    turns.leave(1)
    assert called == [3, 1, 2]


def test_no_more_begin_than_may_be_in_memory():
    """However many step aside."""
    turns, called = FairTurns(1, 1, begun=2), []
    for who in range(3):
        turns.take(who, who, lambda who=who: called.append(who))
        turns.step_aside(who)
    assert called == []
    assert not turns.take("d", 4, lambda: called.append(4))
    turns.leave(0)
    assert called == [2]


def test_who_leaves_while_it_is_aside_is_not_called():
    """Neither where it waits to come back, nor where it does not; its place was given back."""
    turns, called = FairTurns(1, 1, begun=3), []
    assert turns.take("a", 1, lambda: None)
    turns.step_aside(1)
    assert turns.take("b", 2, lambda: None)
    turns.come_back(1, lambda: called.append(1))
    turns.leave(1)
    turns.leave(2)
    assert called == []
    assert turns.take("a", 3, lambda: None)
    assert not turns.take("c", 4, lambda: called.append(4))


def test_those_aside_come_back_in_the_order_in_which_they_called():
    """Not in that in which they stepped aside."""
    turns, called = FairTurns(1, 1, begun=4), []
    for who in (1, 2, 3):
        assert turns.take(who, who, lambda: None)
        turns.step_aside(who)
    assert turns.take(4, 4, lambda: None)
    for who in (3, 1, 2):
        turns.come_back(who, lambda who=who: called.append(who))
    for who in (4, 3, 1, 2):
        turns.leave(who)
    assert called == [3, 1, 2]
