"""The ground that all pages share: layout, templates, login, bundles and failures.

Begin with `render`, which fills a template, and `Access`, which knows the person behind a request.
"""
