"""The Evaluators page: the evaluators on this server, those that can be fetched, and the resources that each needs.

Begin with `state_html`, the part of the page that changes; `read_shelf` reads its content.
"""
