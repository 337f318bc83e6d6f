"""Data files shipped with StepSight; `core.paths` finds them."""
