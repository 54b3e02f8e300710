"""Sphinx settings: `make docs` builds the pages of this folder into build/docs/."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import parablock

project = "parablock"
copyright = "parablock developers"
version = release = parablock.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = [f"api/{module}.md" for module in ("callbacks", "models", "plots", "report", "selection")
                    if find_spec(f"parablock.{module}") is None]  # fmt: skip

# Links are written as they work in the repository; `#a-heading` follows the forges' rule.
myst_heading_anchors = 4

default_role = "py:obj"  # `name` in a docstring links to what is documented, and is code otherwise
autodoc_typehints = "none"  # docstrings say it
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "get_metadata_routing, set_fit_request, set_score_request"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
toc_object_entries_show_parents = "hide"
smartquotes = False  # "rbf" in a text can be copied
maximum_signature_line_length = 80
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "parablock"
html_static_path = ["_static"]
html_css_files = ["parablock.css"]
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "light_css_variables": {"color-brand-primary": "#1f6fc4", "color-brand-content": "#1f6fc4"},
    "dark_css_variables": {"color-brand-primary": "#6cb0f5", "color-brand-content": "#6cb0f5"},
}
pygments_style, pygments_dark_style = "friendly", "github-dark"

# Not in every checkout: a link to a page that is missing is no error, and neither is its place in the contents.
AWAITED = r"(api/)?(callbacks|command-line|models|paper/index|plots|probabilities|report|selection|watching)(\.md)?"
nitpick_ignore_regex = [("myst", AWAITED)]
suppress_warnings = ["toc.not_readable"]
