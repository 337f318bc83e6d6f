"""The migrations, one module per schema change, in order."""
