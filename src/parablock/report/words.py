"""Numbers in words, and what a run has reached in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from parablock.callbacks.log_file import Log, number_or_none

_SPACE = "\u00a0"  # that no line is broken at
_OF_CERTIFICATE = ("dual_objective", "duality_gap", "relative_gap", "violation")
REASONS = {
    "converged": "converged",
    "out of iterations": "ran out of iterations",
    "stalled": "stalled",
    "interrupted": "interrupted",
    "stopped": "stopped by a callback",
    "failed": "failed",
}


def number(value: Any) -> str:
    """With thousands separators and four digits that matter; a dash for what is no number."""
    known = number_or_none(value)
    if known is None:
        return "–"
    if known == int(known) and abs(known) < 1e15:
        return f"{int(known):,}"
    if 1e-4 <= abs(known) < 1e6:
        digits = max(0, 3 - math.floor(math.log10(abs(known))))
        return f"{known:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{known:,.0f}"
    return f"{known:.3g}"


def share(value: Any) -> str:
    """As a percentage, with two digits that matter."""
    known = number_or_none(value)
    if known is None:
        return "–"
    percent = 100 * known
    if percent == 0 or abs(percent) >= 10:
        return f"{percent:.1f}{_SPACE}%"
    return f"{percent:.2g}{_SPACE}%" if abs(percent) >= 1e-3 else f"{percent:.1e}{_SPACE}%"


def duration(seconds: Any) -> str:
    known = number_or_none(seconds)
    if known is None:
        return "–"
    if known < 60:
        return f"{known:.2g}{_SPACE}s" if known < 10 else f"{known:.0f}{_SPACE}s"
    if known < 3600:
        return f"{int(known // 60)}{_SPACE}min {int(known % 60)}{_SPACE}s"
    minutes = round(known / 60)
    return f"{minutes // 60}{_SPACE}h {minutes % 60}{_SPACE}min"


def size(count: Any) -> str:
    """Bytes, in the unit that suits."""
    known = number_or_none(count)
    if known is None:
        return "–"
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if known < 1024:
            return f"{known:.0f}{_SPACE}{unit}" if unit == "bytes" else f"{known:.3g}{_SPACE}{unit}"
        known /= 1024
    return f"{known:.3g}{_SPACE}TiB"


def status(log: Log) -> tuple[str, str]:
    """How the run ended, and how good that is: "good", "fair" or "bad"."""
    if log.end is None:
        return "no end in the log", "fair"
    if _stopped_early(log):
        return "stopped early", "good"
    reason = str(log.end.get("reason"))
    grade = {"converged": "good", "failed": "bad"}.get(reason, "fair")
    return REASONS.get(reason, reason), grade


def certificate(log: Log) -> dict[str, float | None]:
    """What the end of the log says, or the last iteration where there is none."""
    told = (log.end or {}).get("certificate")
    if isinstance(told, dict):
        return {name: number_or_none(told.get(name)) for name in _OF_CERTIFICATE}
    if not log.history:
        return dict.fromkeys(_OF_CERTIFICATE)
    last = log.history[-1]
    values = (-last.objective, last.duality_gap, last.relative_gap, last.violation)
    return {name: number_or_none(value) for name, value in zip(_OF_CERTIFICATE, values, strict=True)}


def sentences(log: Log) -> Iterator[str]:
    """What the run has reached, for who has not read the paper."""
    values = certificate(log)
    kept, made = _kept(log), max((record.iteration for record in log.history), default=0)
    yield _how_it_ended(log, log.history[-1].violation if kept < made else values["violation"])
    if kept < made:
        yield (
            f"The model that was kept is that of iteration {number(kept)}, which had the best validation score; its "
            f"largest violation is {number(values['violation'])}."
        )
    dual, gap, relative = values["dual_objective"], values["duality_gap"], values["relative_gap"]
    if dual is None or gap is None or relative is None:
        return
    of_whom = "The dual objective"
    if not _is_of_all_rows(log):
        of_whom = "Rows that are far from moving rest until they are checked. For the others, the dual objective"
    yield (
        f"{of_whom}, of the kernel matrix in the precision of the data, is within {share(relative)} of the optimum: "
        f"the best value that any model could have on this problem lies between {_exactly(dual, gap)} (dual value) and "
        f"{_exactly(dual + gap, gap)} (primal value, that of this model)."
    )


def _stopped_early(log: Log) -> bool:
    """By `EarlyStopping`, which gives no reason because it is one."""
    return log.end is not None and log.end.get("reason") == "stopped" and log.end.get("why") is None


def _kept(log: Log) -> int:
    """The iteration whose model was kept."""
    last = max((record.iteration for record in log.history), default=0)
    kept = number_or_none((log.end or {}).get("kept_iteration"))
    return last if kept is None else int(kept)


def _is_of_all_rows(log: Log) -> bool:
    """Whether the certificate is of all rows: at the end of a run it always is."""
    if log.end is not None:
        return True
    data = (log.ready or {}).get("data")
    rows = number_or_none(data.get("rows")) if isinstance(data, dict) else None
    watched = [record.watched for record in log.history if record.iteration == _kept(log)]
    return rows is not None and bool(watched) and watched[0] >= rows


def _how_it_ended(log: Log, violation: float | None) -> str:
    count = max((record.iteration for record in log.history), default=0)
    after = f"{number(count)} iteration{'' if count == 1 else 's'}"
    tol = f" (the tolerance was {number(log.tol)})" if log.tol is not None else ""
    reached = f"the largest violation of an optimality condition is {number(violation)}{tol}"
    if log.end is None:
        last = f" After the last one, {reached}." if log.history else ""
        return f"The log has no end: the run is still going on, or it was killed. It tells of {after}.{last}"
    reason, why = log.end.get("reason"), log.end.get("why") or "Early stopping ended training"
    told = {
        "failed": f"The fit failed after {after}: {log.end.get('error') or 'the error is not known.'}",
        "converged": f"Training converged after {after}: {reached}.",
        "out of iterations": f"Training made the {after} that max_iter allowed and has not converged: {reached}.",
        "stalled": f"Training made no further progress after {after}, which is what the precision of the data allows: "
        f"{reached}.",
        "interrupted": f"Training was interrupted after {after}: {reached}.",
        "stopped": f"{why} after {after}: {reached}.",
    }
    return told.get(str(reason), f"Training ended after {after} ({reason}): {reached}.")


def _exactly(value: float, difference: float) -> str:
    """With as many digits as tell values apart that differ by so much."""
    digits = max(0, min(12, 2 - math.floor(math.log10(difference)))) if difference > 0 else 6
    return f"{value:,.{digits}f}"
