"""A plugin for pytest that puts our machines in the place of scikit-learn's before scikit-learn's tests are imported.

SCIKIT_LEARN_PLACES says which: "plain", ours as they are, or "adapted", with scikit-learn's names of parameters. Only
tests that use them are run. What became of each is written as JSON to the file of SCIKIT_LEARN_RESULTS.
"""

import inspect
import json
import os
import re
from importlib import import_module

import pytest
import sklearn.kernel_ridge
import sklearn.svm

PLACES = import_module(f"tests.scikit_learn.{os.environ['SCIKIT_LEARN_PLACES']}")
HOMES = {"SVC": sklearn.svm, "SVR": sklearn.svm, "KernelRidge": sklearn.kernel_ridge}
OURS = tuple(getattr(PLACES, name) for name in HOMES)
for name, home in HOMES.items():
    setattr(home, name, getattr(PLACES, name))

# Parts of the names of tests that take longer than most others together, and show nothing that others do not: many fits
# of many processes, 45 pairs of classes, and a cubic kernel of features that are not scaled.
SLOW = (
    "test_rfe_cv_n_jobs", "test_cross_validate_many_jobs", "test_cross_val_predict_decision_function_shape",
    "-poly-X_train2-",
)  # fmt: skip

results = {}


def uses_ours(item):
    """By its text, or by what it is parametrized with."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    given = any(isinstance(value, OURS) or any(value is kind for kind in OURS) for value in values)
    return given or re.search(r"\b(SVC|SVR|KernelRidge)\b", inspect.getsource(item.function)) is not None


def pytest_collection_modifyitems(config, items):
    chosen = [item for item in items if uses_ours(item) and not any(part in item.name for part in SLOW)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" or not report.passed:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = "" if report.passed else str(report.longrepr if crash is None else crash.message)
        results[f"{item.module.__name__}::{item.name}"] = {"outcome": report.outcome, "text": text}
    return report


def pytest_sessionfinish(session):
    with open(os.environ["SCIKIT_LEARN_RESULTS"], "w") as file:
        json.dump(results, file)
