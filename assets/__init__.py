"""Data files shipped with StepSight; `core.files` finds them."""
