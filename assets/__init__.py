"""Data files shipped with StepSight; `core.assets` finds them."""
