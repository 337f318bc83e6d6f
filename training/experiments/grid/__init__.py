"""The controlled grid: sizes x data x masks x seeds, trained alike, measured on the same traces, compared.

- design: the YAML file of a grid
- experiment: running it
- results, pairs: a JSON file per run, with its figures; matched pairs
- report, tables, plots: the report
"""
