"""Which term began where: what decides how much of a log is cut."""

from ottla.storage.index.leader_epochs import LeaderEpochs


def test_a_term_goes_on_beneath_an_empty_one_and_keeps_its_start():
    """A broker led term 12 without a record, then follows who has more of term 3."""
    epochs = LeaderEpochs([(0, 0), (2, 6), (3, 7), (12, 9)])
    epochs.assign(3, 9)
    assert epochs.entries == [(0, 0), (2, 6), (3, 7)]
    assert epochs.end_offset(3, 12) == (3, 12)


def test_a_term_that_begins_where_newer_ones_stood_replaces_them():
    """What was noted at or above its start, or in a later term, is not true any more."""
    epochs = LeaderEpochs([(0, 0), (2, 6), (5, 7), (6, 9)])
    epochs.assign(4, 7)
    assert epochs.entries == [(0, 0), (2, 6), (4, 7)]
    epochs.assign(4, 8)
    assert epochs.entries == [(0, 0), (2, 6), (4, 7)]
