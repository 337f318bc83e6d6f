"""Data files shipped with StepSight; `core.places` finds them."""
