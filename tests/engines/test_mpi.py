"""MPI ranks, replicated and sharded, by both exchanges: the same solutions as one process; errors reach every rank."""

import numpy as np
import pytest

from parablock.engines import talk
from parablock.engines.sharing import assigned, even_parts
from tests.engines.problems import PROBLEMS, outcome
from tests.engines.ranks import needs_mpi, results, run

pytestmark = pytest.mark.slow  # starts processes

HERE = __file__.rsplit("/", 1)[0]
WAYS = [("replicated", "gather"), ("replicated", "reduce"), ("replicated", "auto"), ("sharded", "auto")]


@pytest.fixture(scope="module")
def expected():
    found = {}
    for name, (make, load) in PROBLEMS.items():
        X, y = load()
        found[name] = outcome(make().fit(X, y), X)
    return found


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize(("data", "exchange"), WAYS, ids=["-".join(way) for way in WAYS])
def test_ranks_find_the_same_solutions(expected, ranks, data, exchange):
    found = results(ranks, f"{HERE}/fit_on_ranks.py", data, exchange)
    assert set(found) == set(expected)
    for name, there in found.items():
        here = expected[name]
        assert there["objective"] == pytest.approx(here["objective"], rel=1e-6), name
        assert there["certified"] == pytest.approx(there["objective"], rel=1e-9), name
        scale = np.abs(here["decision"]).max()
        np.testing.assert_allclose(there["decision"], here["decision"], atol=2e-3 * scale, err_msg=name)


@needs_mpi
@pytest.mark.parametrize("data", ["replicated", "sharded"])
def test_all_ranks_use_float64_where_the_rows_of_one_need_it(data):
    found = results(2, f"{HERE}/unscaled_on_ranks.py", data)
    assert found["times"] == [1, 0]  # said once, by the first rank
    assert found["dtype"] == "float64"
    assert found["objective"] == pytest.approx(found["exact"], rel=1e-3)


@needs_mpi
@pytest.mark.parametrize("stored", ["npy", "csr"])
def test_ranks_read_their_own_part_of_files(tmp_path, stored):
    found = results(2, f"{HERE}/fit_from_files.py", tmp_path, stored)
    assert found["on disk"] == [True, True]
    assert found["objective"] == pytest.approx(found["in memory"], rel=1e-5)
    assert found["agreement"] > 0.995


@needs_mpi
@pytest.mark.parametrize("fault", ["nan", "features", "empty", "one class", "format", "different rows"])
def test_bad_data_on_one_rank_is_an_error_on_all(fault):
    done = run(3, f"{HERE}/bad_shard.py", fault)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every rank raised the same error" in done.stdout


@needs_mpi
def test_a_rank_that_fails_in_the_middle_stops_all():
    done = run(2, f"{HERE}/bad_shard.py", "in the middle")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every rank raised the same error" in done.stdout


@needs_mpi
@pytest.mark.parametrize("rank", [0, 1])
def test_ctrl_c_on_one_rank_ends_the_fit_on_all(rank):
    done = run(2, f"{HERE}/interrupted.py", rank)
    assert done.returncode == 0, done.stdout + done.stderr
    reason, iterations, _ = done.stdout.split()[-3:]
    assert reason == "interrupted"
    assert int(iterations) == 3


def test_an_error_that_wants_more_than_a_text_keeps_its_message():
    failed = [(1, ("UnicodeDecodeError", "invalid start byte"))]
    assert str(talk._error(failed, 2)) == "UnicodeDecodeError: On rank 1 of 2: invalid start byte"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("homes", [False, True])
def test_blocks_are_spread_evenly_over_ranks(seed, homes):
    rng = np.random.default_rng(seed)
    blocks = [np.arange(size) for size in rng.integers(50, 100, size=40)]
    where = [rng.multinomial(len(block), [0.7, 0.1, 0.1, 0.1]) for block in blocks] if homes else None
    rank = assigned(blocks, where, 4)
    work = np.bincount(rank, weights=[len(block) ** 2 for block in blocks], minlength=4)
    assert work.max() <= 1.3 * work.mean()


def test_blocks_stay_at_home_where_there_is_room():
    blocks = [np.arange(10)] * 8
    homes = [np.eye(4, dtype=int)[number % 4] * 10 for number in range(8)]
    np.testing.assert_array_equal(assigned(blocks, homes, 4), np.arange(8) % 4)


@pytest.mark.parametrize(("count", "parts"), [(10, 3), (2, 4), (0, 2), (7, 1)])
def test_even_parts_cover_everything(count, parts):
    starts = even_parts(count, parts)
    assert starts[0] == 0
    assert starts[-1] == count
    assert np.diff(starts).max() - np.diff(starts).min() <= 1
