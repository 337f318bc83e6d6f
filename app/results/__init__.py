"""Results: what evaluators reach on datasets, measured once and shown as tables and figures."""
