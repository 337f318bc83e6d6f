"""Checkpoint layouts, StepSight's and others', one module each; `layout` says what such a module holds."""
