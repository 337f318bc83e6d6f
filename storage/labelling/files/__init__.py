"""Labels as files: exports and imports."""
