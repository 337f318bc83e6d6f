"""Commands that bring traces into the store, list them, and make some."""
