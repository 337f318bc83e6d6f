"""The Evaluators page: evaluators on this server, evaluators to fetch, and the resources that each one needs.

Begin with `state_html`, which renders the part of the page that changes. `read_shelf` collects its content.
"""
