"""Commands that score traces with evaluators, and that measure, calibrate and report on evaluators."""
