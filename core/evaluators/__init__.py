"""Evaluators of every kind, by name, folder, hub id or address.

Begin with `load_evaluator`.
"""
