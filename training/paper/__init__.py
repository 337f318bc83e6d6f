"""The paper, item by item: each table, figure and number beside StepSight's own.

Begin with `make_paper_report`.
"""
