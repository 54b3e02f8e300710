"""How good a fitted model is, as `certify` of the estimators says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parablock.monitor import relative_gap


class CertificateError(ValueError):
    """A model that cannot be certified with the given rows; the message says why.

    Examples
    --------
    >>> from parablock import CertificateError, KernelSVC
    >>> model = KernelSVC().fit([[0.0], [1.0]], [0, 1])
    >>> try:
    ...     model.certify([[0.0], [2.0]], [0, 1])
    ... except CertificateError as error:
    ...     print(str(error).split(":")[0])
    These are not the rows, targets and weights that the model was trained on
    """


@dataclass(frozen=True)
class Certificate:
    """How good a fitted model is for its training problem, in float64; what `certify` of the estimators gives.

    Attributes
    ----------
    primal_objective : float
        ``1/2 |w|^2`` and the losses of all training rows, at the model's own intercept; summed over outputs.
    dual_objective : float
        The dual value of the model's coefficients: no model has a smaller primal objective. Minus infinity where the
        coefficients are no point of the dual problem (see `infeasibility`).
    duality_gap : float or None
        Primal minus dual value: how far the model can be from optimal, its intercept included. None for a kernel that
        is not positive semi-definite; `note` says why.
    violation : float
        Largest violation of the optimality conditions of all outputs, in what ``tol`` and `violation_` count in (of
        ridge and quantile regression that is the spread of the targets); as in LIBSVM it does not depend on the
        intercept, where there is one.
    infeasibility : float
        How far a coefficient is outside of its bounds, or with an intercept the sum of an output's coefficients from
        zero, whichever is more.
    outputs : tuple of Certificate
        The same of every class against the rest, or of every target, where there are several; otherwise empty.
    name : str
        Of the output.
    note : str
        What else must be said.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from parablock import KernelSVC
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> certificate = KernelSVC(C=10, gamma=2).fit(X, y).certify(X, y)
    >>> certificate.violation <= 1e-3, certificate.relative_gap <= 1e-3
    (True, True)
    >>> certificate.duality_gap <= certificate.primal_objective - certificate.dual_objective + 1e-9
    True
    """

    primal_objective: float
    dual_objective: float
    duality_gap: float | None
    violation: float
    infeasibility: float
    outputs: tuple[Certificate, ...] = ()
    name: str = ""
    note: str = ""

    @property
    def relative_gap(self) -> float | None:
        """The duality gap as a share of the primal or dual value, whichever is larger."""
        if self.duality_gap is None:
            return None
        return relative_gap(-self.dual_objective, self.duality_gap) if np.isfinite(self.duality_gap) else np.inf

    def __str__(self) -> str:
        lines = ["Certificate (kernel values in float64)"]
        lines += [f"  {what:<18}{value}" for what, value in self._facts()]
        if self.outputs:
            width = max(len(output.name) for output in self.outputs)
            lines.append(f"  {'':<{width}}  {'primal':>14} {'dual':>14} {'gap':>9} {'violation':>9}")
            for output in self.outputs:
                gap = "none" if output.duality_gap is None else f"{output.duality_gap:.2e}"
                lines.append(
                    f"  {output.name:<{width}}  {output.primal_objective:14.8g} {output.dual_objective:14.8g} {gap:>9} "
                    f"{output.violation:9.2e}"
                )
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "primal objective", f"{self.primal_objective:.10g}"
        yield "dual objective", f"{self.dual_objective:.10g}"
        if self.duality_gap is None:
            yield "duality gap", "none"
        else:
            yield "duality gap", f"{self.duality_gap:.4g} ({self.relative_gap:.2g} of the objective)"
        yield "largest violation", f"{self.violation:.4g}"
        yield "infeasibility", f"{self.infeasibility:.2g}"
