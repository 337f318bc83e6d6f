"""Checkpoint layouts that StepSight did not write, one module each."""
