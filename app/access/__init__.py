"""Rights: who may do what, decided below all pages and routes.

A route names the `Right` it needs through `require`; `Rules` refuses every request that lacks it.
"""
