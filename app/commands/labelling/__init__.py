"""Commands for the labels that people give."""
