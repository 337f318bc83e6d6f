"""Choosing among candidate solutions of a problem by what an evaluator says of their steps.

- candidates, answers: candidate solutions by problem; which answers are the same
- scores, choices: scores, kept for going on; what is chosen
- accuracy, report: how often that is right, and the page of it
"""
