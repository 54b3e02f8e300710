"""Work that goes to whoever has time for it: every piece to one rank, and nothing in the results depends on which."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parablock.devices.cpu.strips import STRIP
from parablock.engines.dealing import KEPT_SHARE, LARGEST_SHARE, SEEN_SHARE, Draws, numbers_of, pieces_of, with_drawn
from parablock.engines.shares import Shares
from parablock.engines.sharing import TOGETHER, interleaved
from parablock.engines.talk import Talk
from tests.engines.ranks import needs_mpi, results

pytestmark = pytest.mark.slow  # starts processes

HERE = __file__.rsplit("/", 1)[0]
counts, ranks, parts = st.integers(0, 300_000), st.integers(1, 40), st.sampled_from([KEPT_SHARE, SEEN_SHARE])


@given(counts, ranks, parts)
def test_own_rows_and_pieces_are_all_rows_once(count, ranks, part):
    own, pieces = pieces_of(count, ranks, part)
    assert len(own) == ranks
    np.testing.assert_array_equal(np.sort(np.concatenate(own + pieces)), np.arange(count))


@given(counts, ranks, parts)
def test_pieces_get_smaller_and_leave_most_rows_with_their_ranks(count, ranks, part):
    own, pieces = pieces_of(count, ranks, part)
    sizes = [len(piece) for piece in pieces]
    assert sizes == sorted(sizes, reverse=True)
    if sizes:
        assert sizes[0] <= (LARGEST_SHARE - 1) * count / ranks
        assert min(map(len, own)) > part * count / ranks - TOGETHER - 1
    else:
        assert max(map(len, own)) - min(map(len, own)) <= 1


@given(counts, ranks)
def test_interleaved_shares_are_even_and_from_everywhere(count, ranks):
    shares = interleaved(count, ranks)
    np.testing.assert_array_equal(np.sort(np.concatenate(shares)), np.arange(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    for share in shares:
        assert (np.diff(share) > 0).all()
        whole = share[: len(share) // TOGETHER * TOGETHER].reshape(-1, TOGETHER)
        assert (np.diff(whole) == 1).all() or count < ranks * TOGETHER
        if len(whole) > 1:  # the next one of all ranks lies between
            assert (np.diff(whole[:, 0])[:-1] == ranks * TOGETHER).all()


def test_neighbours_that_stay_together_are_a_strip():
    assert TOGETHER == STRIP


def played(sizes, pieces, most, machine, rng):
    """The pieces that ranks of so many rows draw, each as long as it has room, at speeds of their own."""
    numbers = {each: iter(numbers_of(machine == each, len(pieces))) for each in machine}  # one list for all its ranks
    draws = [Draws(numbers[each], pieces, most - size) for each, size in zip(machine, sizes, strict=True)]
    hands, speed = [iter(each) for each in draws], rng.uniform(0.05, 1.0, size=len(machine))
    while hands:
        fast = rng.choice(len(hands), p=speed[: len(hands)] / speed[: len(hands)].sum())
        if next(hands[fast], None) is None:
            hands.pop(fast)
    return [each.drawn for each in draws]


@settings(deadline=None)
@given(st.integers(512, 20_000), st.integers(2, 12), parts, st.integers(0, 2**32 - 1))
def test_all_pieces_find_a_rank_that_has_room_however_fast_the_ranks_are(share, ranks, part, seed):
    count = share * ranks
    own, pieces = pieces_of(count, ranks, part)
    rng = np.random.default_rng(seed)
    machine = rng.integers(rng.integers(1, ranks + 1), size=ranks)  # of every rank
    most = LARGEST_SHARE * count / ranks
    drawn = played(map(len, own), pieces, most, machine, rng)
    everyones = [with_drawn(first, pieces, each) for first, each in zip(own, drawn, strict=True)]
    np.testing.assert_array_equal(np.sort(np.concatenate(everyones)), np.arange(count))
    assert max(map(len, everyones)) <= most


@settings(deadline=None)
@given(st.integers(512, 20_000), st.floats(0, 0.6), st.floats(1, 1.6), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_rows_that_wake_find_room_beside_those_that_were_dealt_out_before(share, woken, growth, ranks, seed):
    count = share * ranks
    rng = np.random.default_rng(seed)
    machine = rng.integers(rng.integers(1, ranks + 1), size=ranks)
    shares = Shares.dealt(count, ranks, Shares.most_of(count, int(growth * count), ranks))
    room = [shares.room(rank) + len(rows) for rank, rows in enumerate(shares.rows)]
    assert set(room) == {LARGEST_SHARE * count / ranks}
    shares.settle(played(map(len, shares.rows), shares.pieces, room[0], machine, rng))
    assert len(shares) == count
    assert not shares.pieces
    more = int(woken * count)
    longer = shares.longer(np.array_split(np.arange(more), ranks))
    assert len(longer) == count + more
    if longer.most:
        longer.settle(played(map(len, longer.rows), longer.pieces, longer.most, machine, rng))
        assert max(map(len, longer.rows)) <= longer.most
    for before, now, ends in zip(shares.rows, longer.rows, longer.ends, strict=True):
        np.testing.assert_array_equal(now[: len(before)], before)
        assert ends == sorted(ends)
        assert {len(before), len(now)} <= set(ends)
    np.testing.assert_array_equal(np.sort(np.concatenate(longer.rows)), np.arange(count + more))


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
    for slow, (rows, later) in enumerate(
        zip(found["rows by slow rank"], found["and with those that woke"], strict=True)
    ):
        woken = np.subtract(later, rows)
        for some in (rows, woken):
            assert some[slow] == min(some)
            assert some[slow] < 0.95 * np.mean(some)
    for slow, bridges in enumerate(found["bridges by slow rank"]):
        assert sum(bridges) > bridges[slow] == 0
    assert found["bridges"] >= found["looks ahead"] >= found["blocks that were looked ahead to"] > 0
    assert len(set(found["models"])) == 1
    assert found["objective"] == pytest.approx(found["of one process"], rel=1e-5)
    for name in ("of two machines", "without memory in common"):
        assert found["objective"] == pytest.approx(found[name], rel=1e-5)
    if hasattr(os, "memfd_create"):
        assert found["and without memory in common"] > found["values that a solver computes alone"] == 0
    assert found["times dealt without room"] == 0


@needs_mpi
@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no files in memory")
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_of_one_machine_see_what_the_others_write(ranks):
    found = results(ranks, f"{HERE}/dealt.py", "memory")
    assert [found[size] for size in ("1000", "500", "100000")] == ["seen by all"] * 3
    assert found["beside"] == list(range(ranks))
    assert found["one cannot"] == found["of someone else"] == [True, True]
