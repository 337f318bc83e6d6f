"""Commands that bring traces in, list them, and make some: import, import-scores, datasets, synth."""
