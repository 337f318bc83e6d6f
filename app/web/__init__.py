"""What all pages share: layout, templates, login, bundles, and error pages.

Begin with `render`, which fills in a template, and `Access`, which finds out who made a request.
"""
