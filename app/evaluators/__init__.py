"""The Evaluators page: the evaluators on this server, those that can be fetched, and what each takes.

Begin with `state_html`, the part of the page that changes; `read_shelf` reads what it shows.
"""
