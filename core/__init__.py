"""The evaluator and its arithmetic: no database, no web page, no training loop."""
