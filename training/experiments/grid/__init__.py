"""The controlled grid: sizes x data x masks x seeds, trained alike, measured on the same traces, compared.

- design: the YAML file of a grid
- grid, run: running all of it; one run of it
- results, figures, pairs, forms: a JSON file per run; its figures; matched pairs; two forms of a grid
- report, tables, plots: the report
"""
