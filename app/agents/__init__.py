"""What pages show of agents' traces beside their steps.

Begin with `context_html`.
"""
