"""A store as one file, and back."""
