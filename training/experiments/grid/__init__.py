"""The controlled grid: sizes x data x masks x seeds, trained alike, measured on the same traces, compared.

- design: the YAML file of a grid
- experiment: running it
- results, figures, pairs, forms: a JSON file per run; its figures; matched pairs; two forms of a grid
- report, tables, plots: the report
"""
