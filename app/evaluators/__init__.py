"""The Evaluators page: which evaluators are here, which can be fetched, and what they take.

- page: the page, what of it changes, and the route that fetches
- shelf, card: what it shows of each evaluator; the cards of those that are shipped
- speed: how fast this machine multiplies, measured once
"""
