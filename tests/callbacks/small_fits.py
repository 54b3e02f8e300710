"""Small fits of several iterations, for tests of what watches them."""

import warnings

import numpy as np
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from parablock import KernelSVC

SETTINGS = {"C": 5, "gamma": 3, "tol": 1e-4, "n_blocks": 4, "partition": "random", "random_state": 0, "n_jobs": 1}


def moons(n=200, seed=0):
    X, y = make_moons(n, noise=0.25, random_state=seed)
    return X, np.where(y > 0, "up", "down")


def machine(**settings):
    return KernelSVC(**{**SETTINGS, **settings})


def fit_quietly(model, X, y, **more):
    """For fits that are meant to end early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **more)


class Recorder:
    """A callback that follows scikit-learn's protocol and nothing else; notes what it hears."""

    def __init__(self, stop_after=None, fail_at=None):
        self.stop_after, self.fail_at = stop_after, fail_at
        self.heard, self.models, self.given = [], [], []

    def _hear(self, hook, context):
        self.heard.append((hook, context.task_name))
        if hook == self.fail_at:
            raise OSError(f"no more at {hook}")

    def setup(self, estimator, context):
        self._hear("setup", context)

    def on_fit_task_begin(self, estimator, context):
        self._hear("on_fit_task_begin", context)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self._hear("on_fit_task_end", context)
        self.models.append(fitted_estimator)
        self.given.append((X, y, metadata))
        return self.stop_after is not None and self.heard.count(("on_fit_task_end", "iteration")) >= self.stop_after

    def teardown(self, estimator, context):
        self._hear("teardown", context)
