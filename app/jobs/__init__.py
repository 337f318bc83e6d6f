"""Jobs: the worker, its supervisor and the page."""
