"""The Evaluators page: evaluators on this server, evaluators to fetch, and the resources that each one needs.

Start with `state_html`, which renders the part of the page that changes.
"""
