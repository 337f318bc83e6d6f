"""The parts that all pages share: layout, templates, login, bundles, and error pages.

Start with `render`, which fills in a template, and `Access`, which identifies the sender of a request.
"""
