"""Markdown as the tests of the documentation read it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
PAGES = sorted(DOCS.rglob("*.md"))

_FENCE = re.compile(r"^(<!-- not run: .+? -->\n)?```(\w+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_ANY_FENCE = re.compile(r"^(```+)[^\n]*\n.*?^\1$", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code that is meant to run, and the number of lines before it."""

    language: str
    line: int
    code: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = _FENCE.finditer(text)
    return [Block(one[2], text.count("\n", 0, one.start(3)), one[3]) for one in found if one[1] is None]


def needs(page: Path) -> list[str]:
    """Modules without which the code of a page does not run."""
    found = re.search(r"^<!-- needs: (.+?) -->$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return found[1].split() if found else []


def links(page: Path) -> list[str]:
    """Where the links and images of a page lead, but for other sites."""
    text = _ANY_FENCE.sub("", page.read_text(encoding="utf-8"))
    return [target for target in _LINK.findall(text) if "://" not in target and not target.startswith("mailto:")]


def anchors(page: Path) -> set[str]:
    """What can stand behind # in a link to a page: its headings, as the forges spell them."""
    headings = re.findall(r"^#+ (.+)$", _ANY_FENCE.sub("", page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
