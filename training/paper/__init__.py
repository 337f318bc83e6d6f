"""The paper, item by item: every table, figure and number that it prints, with what StepSight has beside it.

- items: what the paper prints, by section, from assets/reference/paper.json
- facts: numbers by name, of the paper's tables, of recipes, of the store and of experiments
- page: the report
"""
