"""Commands that import traces and scores, list datasets, and generate traces."""
