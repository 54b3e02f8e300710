"""The paper's first step on the full covtype: Algorithm 1, 32 k-means blocks, one iteration, local prediction.

    python -m benchmarks.first_step [--rows N] [--blocks K]

Paper (32 machines): 96.05 % test accuracy after the first step.
"""

from __future__ import annotations

import argparse
import time
import warnings

from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import load
from parablock import KernelSVC


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=None, help="training rows (default: all)")
    parser.add_argument("--blocks", type=int, default=32)
    options = parser.parse_args()
    X, y, X_test, y_test = load("covtype")
    X, y = X[: options.rows], y[: options.rows]
    model = KernelSVC(
        C=32,
        gamma=32,
        fit_intercept=False,
        partition="kmeans",
        n_blocks=options.blocks,
        regroup=False,
        max_iter=1,
        prediction="local",
        random_state=0,
        verbose=1,
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one iteration is what is asked for
        model.fit(X, y)
    print(f"fit: {time.perf_counter() - start:.1f} s, {len(model.support_)} support vectors")
    print(model.partition_.report())
    start = time.perf_counter()
    local = model.score(X_test, y_test)
    print(f"local prediction:  {local:.2%} of {len(y_test)} test rows, {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    everywhere = model.set_params(prediction="global").score(X_test, y_test)
    print(f"global prediction: {everywhere:.2%}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
