"""Work that goes to whoever has time for it: every piece to one rank, and nothing in the results depends on which."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parablock.engines.dealing import KEPT_SHARE, LARGEST_SHARE, SEEN_SHARE, Draws, numbers_of, shares, with_drawn
from parablock.engines.talk import Talk
from tests.engines.ranks import needs_mpi, results

HERE = __file__.rsplit("/", 1)[0]
counts, ranks, parts = st.integers(0, 300_000), st.integers(1, 40), st.sampled_from([KEPT_SHARE, SEEN_SHARE])


@given(counts, ranks, parts)
def test_own_rows_and_pieces_are_all_rows_once(count, ranks, part):
    own, pieces = shares(count, ranks, part)
    assert len(own) == ranks
    np.testing.assert_array_equal(np.sort(np.concatenate(own + pieces)), np.arange(count))


@given(counts, ranks, parts)
def test_pieces_get_smaller_and_leave_most_rows_with_their_ranks(count, ranks, part):
    own, pieces = shares(count, ranks, part)
    sizes = [len(piece) for piece in pieces]
    assert sizes == sorted(sizes, reverse=True)
    if sizes:
        assert sizes[0] <= (LARGEST_SHARE - 1) * count / ranks
        assert min(map(len, own)) >= part * count / ranks - 2
    else:
        assert max(map(len, own)) - min(map(len, own)) <= 1


@settings(deadline=None)
@given(st.integers(1024, 20_000), st.integers(2, 12), parts, st.integers(0, 2**32 - 1))
def test_all_pieces_find_a_rank_that_has_room_however_fast_the_ranks_are(share, ranks, part, seed):
    count = share * ranks
    own, pieces = shares(count, ranks, part)
    rng = np.random.default_rng(seed)
    machine = rng.integers(rng.integers(1, ranks + 1), size=ranks)  # of every rank
    numbers = {each: iter(numbers_of(machine == each, len(pieces))) for each in machine}  # one list for all its ranks
    room = [LARGEST_SHARE * count / ranks - len(each) for each in own]
    draws = [Draws(numbers[each], pieces, most) for each, most in zip(machine, room, strict=True)]
    hands = [iter(each) for each in draws]
    speed = rng.uniform(0.05, 1.0, size=ranks)
    while hands:
        fast = rng.choice(len(hands), p=speed[: len(hands)] / speed[: len(hands)].sum())
        if next(hands[fast], None) is None:
            hands.pop(fast)
    everyones = [with_drawn(first, pieces, each.drawn) for first, each in zip(own, draws, strict=True)]
    np.testing.assert_array_equal(np.sort(np.concatenate(everyones)), np.arange(count))
    assert max(map(len, everyones)) <= LARGEST_SHARE * count / ranks


class Alone(Talk):
    def _share_array(self, values):
        raise NotImplementedError

    def add_up(self, values, counts):
        raise NotImplementedError


def test_ranks_without_a_common_counter_take_turns():
    dealt = [list(Alone(rank, 3).deal(8)) for rank in range(3)]
    assert dealt == [[0, 3, 6], [1, 4, 7], [2, 5]]


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_counter_deals_every_number_once(ranks):
    found = results(ranks, f"{HERE}/dealt.py", "numbers")
    assert found["rounds"] == 50
    assert found["after an error"] == found["of a part of the ranks"] == "every number once"
    assert found["where a rank has no memory to share"] == "every number once"


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_which_rank_is_slow_decides_who_works_but_not_what_comes_out(ranks):
    found = results(ranks, f"{HERE}/dealt.py", "fits")
    for slow, rows in enumerate(found["rows by slow rank"]):
        assert rows[slow] == min(rows)
        assert rows[slow] < 0.95 * np.mean(rows)
    assert len(set(found["models"])) == 1
    assert found["objective"] == pytest.approx(found["of one process"], rel=1e-5)
    assert found["rows without room"] == found["even rows"]
