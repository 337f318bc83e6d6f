"""The parts of agents' traces that pages show beside the steps.

Begin with `context_html`.
"""
