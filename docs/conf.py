"""The manual as a site: `make docs` builds it into build/docs and fails on a dead link.

Nothing of it is loaded from elsewhere. Links to files outside of this folder are copied beside the pages.
"""

project = "StepSight"
copyright = "the authors of StepSight"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
language = "en"

# Anchors as in the Markdown of any forge, so that links work there too.
myst_heading_anchors = 3
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "StepSight"
html_favicon = "../assets/web/icon.svg"
html_static_path = ["static"]
html_css_files = ["manual.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2a66a8", "color-brand-content": "#2a66a8"},
    "dark_css_variables": {"color-brand-primary": "#7eb2ea", "color-brand-content": "#7eb2ea"},
}
highlight_language = "none"
