"""Commands that score with evaluators, and that measure, calibrate and report on them."""
