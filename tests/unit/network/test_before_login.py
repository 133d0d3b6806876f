"""What clients may leave in a broker's memory before they log in."""

from dataclasses import dataclass

from ottla.network.memory_budget import BytesBeforeLogin


@dataclass(eq=False)
class Client:
    """A connection with parts of a request."""

    kept_bytes: int = 0
    is_ended: bool = False

    def on_too_much(self) -> None:
        self.is_ended = True


def noted(limit: int, *sizes: int) -> tuple[BytesBeforeLogin, list[Client]]:
    bound = BytesBeforeLogin(limit)
    clients = [Client(size) for size in sizes]
    for each in clients:
        bound.note(each)
    return bound, clients


def test_the_oldest_end_until_a_quarter_is_free() -> None:
    """The parts of a login that is under way are the newest."""
    bound, clients = noted(100, 40, 30, 20, 20)
    assert [each.is_ended for each in clients] == [True, False, False, False]
    assert bound.noted_bytes == 70


def test_what_was_served_since_counts_no_more() -> None:
    """Only then is it looked at, since nothing is counted where a request is served whole."""
    bound, clients = noted(100, 40, 40)
    clients[0].kept_bytes = 0
    newest = Client(30)
    bound.note(newest)
    assert not any(each.is_ended for each in (*clients, newest))
    assert bound.noted_bytes == 70


def test_more_of_the_same_request_makes_it_no_younger() -> None:
    """A byte a second would keep what came before it."""
    bound, (slow, fast) = noted(100, 40, 40)
    slow.kept_bytes = 70
    bound.note(slow)
    assert (slow.is_ended, fast.is_ended) == (True, False)
    assert bound.noted_bytes == 40


def test_who_logs_in_or_leaves_is_forgotten() -> None:
    """Nothing of it is left to count."""
    bound, (first, second) = noted(100, 40, 40)
    bound.forget(first)
    bound.forget(first)
    second.kept_bytes = 0
    bound.note(second)
    assert bound.noted_bytes == 0
