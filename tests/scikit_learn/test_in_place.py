"""scikit-learn's own tests of SVC, SVR, KernelRidge, and of selecting models and features, with our machines in place.

Run as they are installed, in a process of their own. What fails is in a list (plain.txt for our machines as they are,
adapted.txt for such as have scikit-learn's parameters), each with its reason: "test  # reason". Any other failure is an
error, and so is a test of the list that passes: the list only gets shorter. In lines that begin with "?" rounding
decides, which differs from processor to processor: all tests of that name may fail or pass.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import sklearn

from tests.documents import REPOSITORY

HERE = Path(__file__).parent
MODULES = (
    "sklearn.svm.tests.test_svm",
    "sklearn.svm.tests.test_sparse",
    "sklearn.tests.test_kernel_ridge",
    "sklearn.feature_selection.tests.test_rfe",
    "sklearn.model_selection.tests.test_search",
    "sklearn.model_selection.tests.test_validation",
)


@dataclass(frozen=True)
class Known:
    """A list of failures: of each its reason, and the names of tests that may do either."""

    version: str
    failures: dict[str, str]
    either: dict[str, str]

    @classmethod
    def read(cls, places):
        head, *lines = (HERE / f"{places}.txt").read_text().splitlines()
        pairs = [line.split("  # ") for line in lines]
        failures = {name: reason for name, reason in pairs if not name.startswith("? ")}
        either = {name.removeprefix("? "): reason for name, reason in pairs if name.startswith("? ")}
        return cls(head.split()[4], failures, either)

    def unexpected(self, outcomes):
        """What is not as in the list: (test, what is wrong)."""
        failed = {test for test, one in outcomes.items() if one["outcome"] == "failed"}
        loose = {test for test in outcomes if test.split("[")[0] in self.either}
        new = [(test, outcomes[test]["text"][:300]) for test in sorted(failed - loose - set(self.failures))]
        passing = [(test, "is in the list, but does not fail") for test in sorted(set(self.failures) - failed)]
        return new + passing


def outcomes_of(places, folder):
    results = folder / "results.json"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SKLEARN"))},
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")]),
        "SCIKIT_LEARN_PLACES": places,
        "SCIKIT_LEARN_RESULTS": str(results),
    }
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider"]
    command += ["-p", "no:xdist", "-p", "tests.scikit_learn.replacing", "-q", "--tb=line", "--pyargs", *MODULES]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    assert ran.returncode in (0, 1), ran.stdout[-3000:] + ran.stderr[-3000:]
    return json.loads(results.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("places", ["plain", "adapted"])
def test_what_fails_of_scikit_learns_tests_is_known_and_has_a_reason(places, tmp_path):
    known = Known.read(places)
    if sklearn.__version__ != known.version:
        pytest.skip(f"the list is of scikit-learn {known.version}")
    outcomes = outcomes_of(places, tmp_path)
    assert len(outcomes) > 200
    assert sum(one["outcome"] == "passed" for one in outcomes.values()) > len(outcomes) / 3
    assert known.unexpected(outcomes) == []


@pytest.mark.parametrize("places", ["plain", "adapted"])
def test_every_line_of_a_list_has_a_reason(places):
    known = Known.read(places)
    assert known.failures
    assert all(reason.endswith(".") for reason in [*known.failures.values(), *known.either.values()])


def test_new_failures_and_passes_of_the_list_are_both_found():
    known = Known("1", {"a.py::one": "Why.", "a.py::two": "Why."}, {"a.py::loose": "Why."})
    outcomes = {
        "a.py::one": {"outcome": "failed", "text": "known"},
        "a.py::two": {"outcome": "passed", "text": ""},
        "a.py::three[x]": {"outcome": "failed", "text": "new"},
        "a.py::loose[x]": {"outcome": "failed", "text": "rounding"},
        "a.py::loose[y]": {"outcome": "passed", "text": ""},
    }
    assert known.unexpected(outcomes) == [
        ("a.py::three[x]", "new"),
        ("a.py::two", "is in the list, but does not fail"),
    ]
    assert known.unexpected({"a.py::one": outcomes["a.py::one"]}) == [
        ("a.py::two", "is in the list, but does not fail")
    ]
