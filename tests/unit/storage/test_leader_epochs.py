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


def test_the_latest_epoch_is_the_last_entry_after_every_change():
    """Appends compare with it and look at nothing else."""
    epochs = LeaderEpochs()
    assert epochs.latest == -1
    epochs.assign(2, 0)
    epochs.assign(5, 10)
    assert epochs.latest == 5
    epochs.truncate_from_start(12)
    assert (epochs.latest, epochs.entries) == (5, [(5, 12)])
    epochs.assign(4, 12)
    assert epochs.latest == 4
    assert LeaderEpochs.decode(epochs.encode()).latest == 4
    epochs.truncate_from_end(12)
    assert epochs.latest == -1
    epochs.assign(7, 12)
    epochs.clear()
    assert epochs.latest == -1
