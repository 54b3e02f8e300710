"""The site builds without a warning, its links lead somewhere, and all code in pages and docstrings runs."""

import doctest
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import parablock
from tests.documents import DOCS, PAGES, REPOSITORY, anchors, blocks, links, needs

README = REPOSITORY / "README.md"
# What users import from. Of engines and monitor some names are for the library itself.
PUBLIC = {
    "parablock": None,
    "parablock.callbacks": None,
    "parablock.datasets": None,
    "parablock.engines": ["DaskEngine", "Engine", "LocalEngine", "MPIEngine"],
    "parablock.kernels": None,
    "parablock.losses": None,
    "parablock.models": None,
    "parablock.monitor": ["Record", "relative_gap"],
    "parablock.partition": [
        "PARTITIONERS", "Centres", "GivenPartitioner", "KMeansPartitioner", "KernelKMeansPartitioner", "Partition",
        "Partitioner", "RandomPartitioner", "TreePartitioner", "make_partitioner",
    ],
    "parablock.planning": None,
    "parablock.plots": None,
    "parablock.report": None,
    "parablock.selection": None,
}  # fmt: skip


def public_names():
    for module, chosen in PUBLIC.items():
        if find_spec(module) is not None:
            names = importlib.import_module(module).__all__ if chosen is None else chosen
            yield from (f"{module}.{name}" for name in names if not name.startswith("_"))


def thing_of(name):
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(module), own)


# ------------------------------------------------------------------------------------------------------ docstrings


@pytest.mark.parametrize("name", list(public_names()))
def test_public_names_have_an_example(name):
    thing = thing_of(name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        assert ">>> " in (thing.__doc__ or ""), f"{name} has no example in its docstring"


def modules():
    found = pkgutil.walk_packages(parablock.__path__, "parablock.")
    # What needs a GPU's compiler has no examples, and a module that runs a program when it is imported none either.
    names = [one.name for one in found if ".cuda" not in one.name and not one.name.endswith("__main__")]
    return ["parablock", *names]


def test_examples_in_docstrings_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attempted, failed = 0, []
    for name in modules():
        result = doctest.testmod(importlib.import_module(name))
        attempted += result.attempted
        failed += [name] * (result.failed > 0)
    assert not failed, "see the captured output"
    assert attempted > 200


# ----------------------------------------------------------------------------------------------------------- pages


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in [README, *PAGES] if any(block.language == "python" for block in blocks(page))],
    ids=lambda page: page.stem,
)
def test_code_of_pages_runs(page, tmp_path, monkeypatch):
    for module in needs(page):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": "documentation"}, ""
    for block in blocks(page):
        if block.language == "python":
            # Padded to its place, so that an error shows the line of the page; and the name is no file's, so that
            # compiled functions are not cached beside the page.
            exec(compile("\n" * block.line + block.code, f"<{page.name}>", "exec"), namespace)
        elif block.language == "sh":
            printed = run_commands(block.code)
        elif block.language == "text":
            assert block.code in printed, f"line {block.line} of {page.name} shows what the commands above do not print"


def run_commands(script):
    """What those lines of a shell script print that call parablock."""
    environment = {**os.environ, "PYTHONPATH": str(Path(parablock.__file__).parents[1])}
    printed = ""
    for line in script.splitlines():
        if line.startswith("parablock "):
            command = f'"{sys.executable}" -m {line}'
            done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            printed += done.stdout
    return printed


def test_readme_shows_the_quickstart():
    program = (REPOSITORY / "examples" / "quickstart.py").read_text(encoding="utf-8")
    assert blocks(README)[0].code.strip() in program


@pytest.mark.parametrize("page", [README, REPOSITORY / "CHANGELOG.md", *PAGES], ids=lambda page: page.stem)
def test_links_lead_somewhere_in_the_repository(page):
    missing = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            missing.append(target)
    assert not missing


@pytest.mark.parametrize("name", ["idea", "blocks", "kernel-matrix", "step"])
def test_figures_can_be_drawn(name, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    found = spec_from_file_location("figures", DOCS / "figures.py")
    figures = module_from_spec(found)
    found.loader.exec_module(figures)
    assert (figures.IMAGES / f"{name}.png").exists()
    with matplotlib.rc_context():
        figures.style()
        figures.FIGURES[name]().savefig(tmp_path / f"{name}.png")
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


# ------------------------------------------------------------------------------------------------------------ site


class Reader(HTMLParser):
    """Collects what a page can be linked by, where it links to, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given["id"]} if "id" in given else set()
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in ("img", "script") and given.get("src"):
            self.loaded.append(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon") and given.get("href"):
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for module in ("sphinx", "furo", "myst_parser", "sphinx_copybutton"):
        pytest.importorskip(module, reason="the site is built with parablock[docs]")
    folder = tmp_path_factory.mktemp("site")
    # As `make docs` does.
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_links_of_the_site_lead_somewhere(site):
    pages = {path: Reader(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    assert len(pages) > 20
    broken = []
    for path, page in pages.items():
        for target in page.links + page.loaded:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https", "mailto") or (path.stem == "genindex" and not parts.path):
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = there.exists() and (not parts.fragment or unquote(parts.fragment) in pages[there].ids)
            if not found:
                broken.append(f"{path.relative_to(site)}: {target}")
    assert not broken


def test_the_site_needs_no_network(site):
    for path in site.rglob("*.html"):
        for target in Reader(path.read_text(encoding="utf-8")).loaded:
            assert not urlsplit(target).netloc, f"{path.name} loads {target}"


def test_the_reference_has_every_public_name(site):
    from sphinx.util.inventory import InventoryFile

    with open(site / "objects.inv", "rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    documented = {name for kind, entries in inventory.items() if kind.startswith("py:") for name in entries}
    # A name may be documented where it comes from: parablock.Loss as parablock.losses.Loss.
    places = {(name.rpartition(".")[2], id(thing_of(name))) for name in public_names() if name in documented}
    missing = [name for name in public_names() if (name.rpartition(".")[2], id(thing_of(name))) not in places]
    assert not missing


def test_every_page_is_in_the_contents(site):
    front = Reader((site / "index.html").read_text(encoding="utf-8"))
    reached = {urlsplit(link).path for link in front.links}
    for page in PAGES:
        name = page.relative_to(DOCS).with_suffix(".html").as_posix()
        if page.stem != "index" and (site / name).exists():
            assert name in reached, f"{name} is in no table of contents"
