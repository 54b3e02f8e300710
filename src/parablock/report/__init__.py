"""One page about a run, made of its log."""

from parablock.report.page import write_report

__all__ = ["write_report"]
