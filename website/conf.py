"""Settings of Sphinx for the site; ``website/build.py`` writes the pages first.

Sphinx reads the Markdown pages through MyST, and the docstrings through numpydoc. The theme is
that of NumPy, SciPy and pandas. Nothing is fetched when a page is opened: formulas are MathML, and
fonts belong to the system.
"""

from website import places
from website.menu import repository

project = "wollemi"
author = "wollemi authors"
copyright = "wollemi authors, BSD-3-Clause"
release = places.version()
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "website.docstrings",
    "website.mathml",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
templates_path = [str(places.ROOT / "website/templates")]
html_static_path = [str(places.ROOT / "website/static")]
html_css_files = ["site.css"]
html_search_scorer = str(places.ROOT / "website/static/scorer.js")
html_math_renderer = "mathml"

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_allow_space = False
myst_dmath_allow_digits = False

add_module_names = False
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_attributes_as_param_list = True
python_maximum_signature_line_length = 88
viewcode_follow_imported_members = True
copybutton_selector = "div.highlight:not(.output div) pre"
copybutton_exclude = ".linenos, .gp"

html_theme = "pydata_sphinx_theme"
html_title = f"wollemi {release}"
html_logo = str(places.ROOT / "website/static/logo.svg")
html_favicon = html_logo
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "wollemi", "alt_text": "wollemi, the first page"},
    "navbar_start": ["navbar-logo", "version"],
    "header_links_before_dropdown": 6,
    "icon_links": [
        {"name": "Repository", "url": address, "icon": "fa-solid fa-code-branch"}
        for address in filter(None, [repository()])
    ],
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "collapse_navigation": True,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"**": ["site-nav"]}
