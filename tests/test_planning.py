"""Forecasts: what must hold of any, and that they are near to what fits of a few thousand rows count."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parablock
from benchmarks import planning, running
from benchmarks.cpu import write_document
from parablock import KernelLogisticRegression, KernelRidge, KernelSVC, plan
from parablock.datasets import load_covtype_sample
from parablock.planning import Machine, Network
from parablock.planning.forecast import duration, size

WITHIN = 2.0  # the factor that a forecast of counts may be off

questions = st.fixed_dictionaries(
    {
        "rows": st.integers(2_000, 10**9),
        "features": st.integers(1, 5_000),
        "device": st.sampled_from(["cpu", "cuda"]),
        "support": st.none() | st.floats(0.001, 1.0),
        "outputs": st.integers(1, 10),
        "dtype": st.sampled_from(["float32", "float64"]),
        "data": st.sampled_from(["replicated", "sharded"]),
        "threads": st.none() | st.integers(1, 64),
        "network": st.sampled_from(["shared memory", "10 GbE", "InfiniBand"]),
        "memory_limit": st.none() | st.integers(10**8, 10**12),
        "tol": st.floats(1e-5, 1.0),
    }
)
ranks = st.integers(1, 1_000)


# --------------------------------------------------------------------------------------------------------- properties


@given(questions, ranks, st.integers(2, 8))
def test_more_ranks_need_no_more_memory_each_and_compute_no_longer(question, few, times):
    before, after = plan(ranks=few, **question), plan(ranks=min(few * times, question["rows"]), **question)
    assert after.memory_per_rank.total <= before.memory_per_rank.total * (1 + 1e-9)
    for part in ("blocks", "serial"):
        assert getattr(after.seconds, part) <= getattr(before.seconds, part) * (1 + 1e-9)
    if after.kept_columns > before.kept_columns:
        return  # cheap values, of few features, may take longer to read than to compute again
    assert after.seconds.products <= before.seconds.products * (1 + 1e-9)
    # So only communication can make it slower.
    grown = after.seconds.communication - before.seconds.communication
    assert after.seconds.total <= before.seconds.total + max(0.0, grown) + 1e-9 * before.seconds.total


@given(questions, ranks)
def test_bytes_do_not_depend_on_the_number_of_ranks(question, count):
    one, two, many = (plan(ranks=number, **question) for number in (1, 2, count + 1))
    assert (one.bytes_per_iteration, one.bytes_sent, one.seconds.communication, one.seconds_waiting) == (0, 0, 0, 0)
    assert many.bytes_per_iteration == two.bytes_per_iteration > 0
    assert many.bytes_sent == two.bytes_sent > two.bytes_per_iteration


@given(questions, ranks)
def test_sharded_rows_take_no_more_memory_than_replicated_ones(question, count):
    replicated, sharded = (plan(ranks=count, **{**question, "data": data}) for data in ("replicated", "sharded"))
    assert sharded.memory_per_rank.data <= replicated.memory_per_rank.data * (1 + 1e-9)
    assert sharded.memory_per_rank.state == replicated.memory_per_rank.state
    assert sharded.bytes_sent >= replicated.bytes_sent


@given(questions, ranks)
def test_parts_are_sane(question, count):
    forecast = plan(ranks=count, **question)
    assert forecast.support_vectors <= forecast.watched <= forecast.rows
    assert (0 < forecast.kept_columns <= 1) if question["device"] == "cpu" else forecast.kept_columns == 0
    assert forecast.work > 0
    for whole in (forecast.memory_per_rank, forecast.seconds):
        assert min(dataclasses.astuple(whole)) >= 0
        assert sum(dataclasses.astuple(whole)) == pytest.approx(whole.total)
    assert forecast.seconds.communication <= forecast.seconds_waiting * (1 + 1e-9) or count == 1
    limit = question["memory_limit"]
    if limit is not None:
        assert forecast.memory_per_rank.blocks + forecast.memory_per_rank.columns <= limit * (1 + 1e-9)


def test_one_rank_is_the_measure_of_efficiency():
    assert plan(100_000, 54).efficiency == pytest.approx(1.0)
    assert plan(100_000, 54, ranks=64, threads=1).efficiency < 1


def test_less_memory_means_more_kernel_values_and_a_slower_network_more_time():
    assert plan(100_000, 54, memory_limit="1GB").kernel_values > plan(100_000, 54, memory_limit="64GB").kernel_values
    slow, fast = (plan(10**6, 54, ranks=8, network=Network(speed, 1e-6)).seconds for speed in (1e8, 1e10))
    assert slow.communication > 10 * fast.communication
    assert slow.products == fast.products


def test_state_of_all_rows_limits_the_memory_of_a_billion():
    forecast = plan(10**9, 54, ranks=1000, data="sharded")
    assert forecast.memory_per_rank.state > 0.9 * forecast.memory_per_rank.total
    assert forecast.memory_per_rank.state > 100e9


def test_what_a_smaller_fit_told_is_taken():
    forecast = plan(50_000, 22, support=0.05, watched=14_000, iterations=10)
    assert (forecast.support_vectors, forecast.watched, forecast.iterations) == (2_500, 14_000, 10)
    assert plan(50_000, 22, coefficients="dense").support_vectors == 50_000
    assert plan(np.int64(50_000), 22.0, support=np.int32(7)).support_vectors == 7


def test_columns_that_are_mostly_zero_take_less_memory_and_more_of_them_are_kept():
    asked = {"rows": 464_810, "features": 54, "memory_limit": "8GB"}
    few, all_of_it = (plan(filled=filled, **asked) for filled in (0.1, 1.0))
    assert few.kept_columns > 1.5 * all_of_it.kept_columns
    assert few.kernel_values < all_of_it.kernel_values
    assert few.seconds.products < all_of_it.seconds.products
    plenty = {**asked, "memory_limit": "1TB"}
    assert plan(filled=0.1, **plenty).memory_per_rank.columns == pytest.approx(
        0.1 * plan(filled=1.0, **plenty).memory_per_rank.columns
    )
    # Of data like covtype it is known; of other data, and in float64, whose smallest values are smaller, it is not.
    assert plan(**plenty).memory_per_rank.columns < 0.1 * plan(filled=1.0, **plenty).memory_per_rank.columns
    for other in ({"support": 72_885}, {"dtype": "float64"}):
        assert plan(**plenty, **other) == plan(filled=1.0, **plenty, **other)


def test_forecast_is_readable():
    lines = str(plan(1e9, 54, ranks=1000, data="sharded")).splitlines()
    assert any(line.startswith("memory a rank") and line.endswith(" GB") for line in lines)
    assert any(line.startswith("efficiency") and line.endswith("%") for line in lines)
    assert [size(count) for count in (0, 999, 1e3, 2.5e9, 1e18)] == ["0 B", "999 B", "1 kB", "2.5 GB", "1e+03 PB"]
    assert [duration(spent) for spent in (0.5, 119, 600, 7_200, 864_000)] == [
        "0.5 s",
        "119 s",
        "10 min",
        "2 h",
        "10 days",
    ]


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": 0}, "rows must be a whole number of at least 1; got 0"),
        ({"rows": 1e300}, "rows must be at most 1,000,000,000,000,000; got 1e\\+300"),
        ({"rows": 10**400}, "rows must be at most 1,000,000,000,000,000; got a whole number of 401 digits"),
        ({"tol": 10**400}, "tol must be a positive number; got a whole number of 401 digits"),
        ({"memory_limit": 10**400}, "memory_limit must be a positive number of bytes"),
        ({"rows": 10.5}, "got 10.5"),
        ({"rows": "many"}, "got 'many'"),
        ({"features": True}, "features must be a whole number"),
        ({"ranks": 1_001}, "ranks must be at most 1,000; got 1001"),
        ({"outputs": float("nan")}, "outputs must be a whole number"),
        ({"threads": -1}, "threads must be a whole number"),
        ({"device": "tpu"}, "device must be one of 'cpu', 'cuda'; got 'tpu'"),
        ({"dtype": "float16"}, "dtype must be one of 'float32', 'float64'"),
        ({"data": "spread"}, "data must be one of 'replicated', 'sharded'"),
        ({"network": "pigeons"}, "network must be one of 'shared memory', '10 GbE', 'InfiniBand'; got 'pigeons'"),
        ({"support": 1_001}, "whole number from 1 to 1,000; got 1001"),
        ({"support": 0.0}, "support must be a share"),
        ({"watched": 5, "support": 0.5}, "watched must be at least the number of support vectors, 500; got 5"),
        ({"coefficients": "few"}, "coefficients must be one of"),
        ({"coefficients": "dense", "support": 0.5}, "leave support=0.5 out"),
        ({"nonzeros": 11}, "at most the number of features, 10; got 11"),
        ({"nonzeros": -1}, "nonzeros must be a positive number"),
        ({"tol": 0}, "tol must be a positive number; got 0"),
        ({"memory_limit": "much"}, "memory_limit must be"),
        ({"iterations": 0, "rows": 10_000}, "iterations must be a whole number"),
        ({"filled": 0}, "filled must be a number above 0 and up to 1; got 0"),
        ({"filled": 1.5}, "filled must be a number above 0 and up to 1; got 1.5"),
    ],
)
def test_bad_input_is_refused_with_what_was_given_and_what_is_accepted(wrong, message):
    with pytest.raises(ValueError, match=message):
        plan(**{"rows": 1_000, "features": 10, **wrong})


def test_machines_and_networks_are_checked_too():
    with pytest.raises(TypeError, match=r"machine must be a parablock.planning.Machine; got 'fast'"):
        plan(1_000, 10, machine="fast")
    with pytest.raises(TypeError, match=r"network must be a parablock.planning.Network; got 7"):
        plan(1_000, 10, network=7)
    with pytest.raises(ValueError, match=r"Machine.feature_ns must be a positive number; got 0"):
        Machine(feature_ns=0)
    with pytest.raises(ValueError, match=r"Network.latency must be a zero or positive number; got -1"):
        Network(1e9, -1)
    with pytest.raises(ValueError, match="features must be more than 8"):
        Machine.measured(8)


# -------------------------------------------------------------------------------------------------- beside real fits


@pytest.mark.parametrize(
    ("estimator", "options", "asked"),
    [
        (KernelSVC, {}, {}),
        (KernelSVC, {"memory_limit": "60MB"}, {"memory_limit": "60MB"}),
        (KernelLogisticRegression, {}, {"coefficients": "dense"}),
    ],
)
def test_kernel_values_are_near_those_of_a_fit(estimator, options, asked):
    X, y, _, _ = load_covtype_sample()
    options = {"memory_limit": "1GB", **options}
    model = estimator(C=32, gamma=32, random_state=0, n_jobs=1, **options).fit(X[:8_000], y[:8_000])
    forecast = plan(8_000, X.shape[1], threads=1, **{"memory_limit": "1GB", **asked})
    assert 1 / WITHIN < forecast.kernel_values / model.kernel_evaluations_ < WITHIN
    assert 1 / WITHIN < forecast.support_vectors / len(model.support_) < WITHIN
    assert 1 / WITHIN < forecast.iterations / model.n_iter_ < WITHIN


def test_ridge_at_once_is_forecast_as_it_is_solved():
    X, y, _, _ = load_covtype_sample()
    model = KernelRidge(gamma=32, n_jobs=1).fit(X[:1_500], y[:1_500])
    forecast = plan(1_500, X.shape[1], threads=1, coefficients="ridge")
    assert forecast.iterations == model.n_iter_ == 1
    assert forecast.support_vectors == 1_500
    assert 1 / WITHIN < forecast.kernel_values / model.kernel_evaluations_ < WITHIN
    assert forecast.memory_per_rank.columns == 8 * 1_500**2


def test_ridge_is_forecast_in_blocks_where_it_is_solved_so():
    def iterations(**asked):
        return plan(**{"rows": 9_000, "features": 8, "coefficients": "ridge", **asked}).iterations

    assert iterations(rows=8_192) == 1
    assert iterations() > 1
    assert iterations(memory_limit="2GB") == 1
    assert iterations(rows=8_000, memory_limit="500MB") > 1
    assert iterations(rows=8_000, ranks=2) > 1
    assert iterations(rows=8_000, device="cuda") > 1
    assert iterations(rows=8_000, iterations=12) == 12
    assert iterations() == iterations(coefficients="dense")


def test_this_machine_can_be_measured():
    machine = Machine.measured(16)
    assert machine.bandwidth >= machine.core_bandwidth > 1e8
    assert 0 < machine.value_ns + 16 * machine.feature_ns < 1_000
    assert plan(10_000, 16, machine=machine).threads == machine.cores


# -------------------------------------------------------------------------------------------------- the benchmark


@pytest.mark.slow
def test_benchmark_prints_forecasts_beside_fits(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(running, "RESULTS", tmp_path)
    monkeypatch.setattr(planning, "CASES", planning.CASES[:1])
    monkeypatch.setattr(planning, "RANKS", ())
    assert planning.main(["--share", "0.3"]) == 0
    printed = capsys.readouterr().out
    assert "| covtype | 3,000 |" in printed
    assert "1,000,000,000" in printed
    assert (tmp_path / "planning-trial.json").exists()


def test_benchmark_refuses_to_document_a_trial(capsys):
    with pytest.raises(SystemExit):
        planning.main(["--share", "0.1", "--write-docs"])
    assert "whole measurements" in capsys.readouterr().err


def test_document_has_a_place_for_every_table(tmp_path):
    path = tmp_path / "distributed.md"
    path.write_bytes(planning.DOCUMENT.read_bytes())
    for section in planning.SECTIONS:
        write_document(section, "measured", path)


def test_plan_is_public():
    assert "plan" in parablock.__all__


def test_how_fast_a_machine_computes_does_not_change_what_it_computes():
    slow, fast = Machine(), Machine(value_ns=0.1, feature_ns=0.01)
    one, other = (plan(10_000, 54, machine=machine) for machine in (slow, fast))
    assert one.kernel_values == other.kernel_values
    assert one.seconds.total > other.seconds.total
