"""Mailboxes without a cluster: what ranks say arrives, and what nobody of them has said is an error that says so."""

import threading

import numpy as np
import pytest

from parablock.engines.mailbox import Mailbox, MailboxTalk
from parablock.engines.talk import BadMessage, RankLost, _loaded


class Sent:
    def result(self, timeout):
        return None


class Actor:
    """As Dask's: it hands calls on to the mailbox."""

    def __init__(self, mailbox):
        self.mailbox = mailbox

    def put(self, turn, message):
        self.mailbox.put(turn, message)
        return Sent()


def ranks(count, name):
    """Talks of so many ranks, and their mailboxes, which somebody must hold."""
    mailboxes = [Mailbox(f"{name} {rank}") for rank in range(count)]
    actors = [Actor(mailbox) for mailbox in mailboxes]
    return [MailboxTalk(rank, actors, f"{name} {rank}") for rank in range(count)], mailboxes


def together(talks, work):
    """What every rank's work gave, or the error that it ended with."""
    results = [None] * len(talks)

    def run(rank):
        try:
            results[rank] = work(talks[rank])
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(len(talks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results


@pytest.mark.parametrize("count", [2, 3, 5])
def test_everybody_hears_what_everybody_says(count):
    talks, _boxes = ranks(count, f"good {count}")
    said = [{"rank": rank, "values": np.arange(rank)} for rank in range(count)]
    for heard in together(talks, lambda talk: [talk.share(said[talk.rank]) for _ in range(3)]):
        for values in heard:
            assert [value["rank"] for value in values] == list(range(count))
            assert [value["values"].tolist() for value in values] == [list(range(rank)) for rank in range(count)]


NOISE = np.frombuffer(b"\x80\x05garbage", dtype=np.uint8)
GARBAGE = [
    (1, None, "no list of arrays, but NoneType"),
    (1, b"garbage", "no list of arrays, but bytes"),
    (1, [], "no list of arrays, but list"),
    (1, ["garbage"], "not all arrays of one dimension"),
    (1, [np.eye(2)], "not all arrays of one dimension"),
    (1, [np.array([{}], dtype=object)], "not all arrays of one dimension"),
    ("first", [NOISE], "turn 'first', which is no number of a turn"),
    (0, [NOISE], "turn 0, which is no number of a turn"),
    (1, [np.zeros(4)], r"a message of 1 arrays \(float64\) where 1 \(uint8\) were sent|two of turn 1"),
    (1, [NOISE, NOISE], "a message of 2 arrays|two of turn 1"),
    (1, [NOISE], "What rank 1 sent cannot be read|two of turn 1"),
]


@pytest.mark.parametrize(("turn", "message", "complaint"), GARBAGE)
def test_garbage_in_a_mailbox_is_an_error_that_says_so(turn, message, complaint):
    talks, boxes = ranks(2, f"garbage {complaint}")
    boxes[0].put(turn, message)
    first = together(talks, lambda talk: talk.share("what was said"))[0]
    assert isinstance(first, BadMessage)
    with pytest.raises(BadMessage, match=complaint):
        raise first


def test_a_rank_that_is_gone_is_something_else():
    talks, boxes = ranks(2, "gone")
    boxes[0].lose("Worker two is gone.")
    assert isinstance(together(talks[:1], lambda talk: talk.share(1))[0], RankLost)


def test_a_message_of_a_class_that_is_not_there_names_the_rank():
    with pytest.raises(BadMessage, match=r"What rank 7 sent cannot be read \(ModuleNotFoundError: .*same version"):
        _loaded(7, np.frombuffer(b"cnowhere\nNothing\n.", dtype=np.uint8))
