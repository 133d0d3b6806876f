"""R-12: a process that stood still listens before it judges others."""

from ottla.broker.replication.liveness import INTERRUPTIONS_MAX, PauseGuard

PAUSE_MS = 350
LISTENING_MS = 100


def listening(now_ms=0):
    return PauseGuard(now_ms, pause_ms=PAUSE_MS, listening_ms=LISTENING_MS)


def left_ms(process, now_ms):
    process.on_ran(now_ms)
    return process.left_ms()


def test_a_process_that_runs_on_time_may_judge_at_once():
    """Timers that are a little late are no pause."""
    process = listening()
    assert left_ms(process, 350) == 0
    assert left_ms(process, 700) == 0


def test_a_process_that_stood_still_listens_first():
    """What was sent to it meanwhile has yet to be read."""
    process = listening()
    assert left_ms(process, 1000) == 100
    assert left_ms(process, 1060) == 40
    assert left_ms(process, 1100) == 0
    assert process.awake_ms == 1000


def test_a_second_pause_within_the_listening_begins_it_anew():
    """The timer that was to judge after the first pause runs late itself (idle seed 3269)."""
    process = listening()
    assert left_ms(process, 50_447) == 100
    assert left_ms(process, 51_796) == 100
    assert left_ms(process, 51_896) == 0


def test_a_process_that_pauses_again_and_again_judges_in_the_end():
    """One whose every turn takes so long reads between them; a late follower leaves the ISR."""
    process = listening()
    for turn in range(1, INTERRUPTIONS_MAX + 1):
        assert left_ms(process, turn * 400) == 100
    assert left_ms(process, (INTERRUPTIONS_MAX + 1) * 400) == 0


def test_interruptions_are_counted_in_a_row():
    """Pauses that the process had listened after do not count."""
    process = listening()
    for pause in range(1, 3 * INTERRUPTIONS_MAX):
        assert left_ms(process, pause * 1000) == 100
        assert left_ms(process, pause * 1000 + 100) == 0
