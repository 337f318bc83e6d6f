"""Equations that check themselves."""
