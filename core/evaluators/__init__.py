"""Evaluators of every kind, loaded by name, folder, hub id or address.

Start with `load_evaluator`.
"""
