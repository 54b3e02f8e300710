"""A wide kernel: deformed MNIST digits, round ones against the rest, C=1, gamma=2^-21 on raw pixels.

    python -m benchmarks.wide_kernel [--rows N] [--tol T] [--no-intercept]

Typical kernel values between different digits are far from zero here, so many small blocks get into each other's
way (see `parablock.solver.schedule`); the number of outer iterations tells how well that is handled.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.data import load
from benchmarks.deformed_digits import deformed_digits, round_digits
from parablock import KernelSVC


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--no-intercept", action="store_true")
    options = parser.parse_args()
    X, digits = deformed_digits(options.rows)
    _, _, X_test, test_digits = load("mnist")
    model = KernelSVC(
        C=1, gamma=2.0**-21, tol=options.tol, fit_intercept=not options.no_intercept, random_state=0, verbose=1
    )
    start = time.perf_counter()
    model.fit(X, round_digits(digits))
    seconds = time.perf_counter() - start
    work = model.kernel_evaluations_ / (options.rows * len(model.support_))
    print(f"{options.rows} rows, {'without' if options.no_intercept else 'with'} intercept: {model.n_iter_} outer")
    print(f"iterations, {seconds:.0f} s, {len(model.support_)} support vectors, violation {model.violation_:.2e},")
    print(f"dual objective {model.dual_objective_:.2f}, {work:.1f} kernel evaluations a row and support vector,")
    print(f"test accuracy {model.score(X_test, round_digits(test_digits)):.2%}")


if __name__ == "__main__":
    main()
