"""Evaluators of this server, and scoring with them."""
