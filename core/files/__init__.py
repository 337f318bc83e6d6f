"""Reading and writing files. Needs no PyTorch.

- atomic: a file appears whole, or not at all
- json_values, jsonl: JSON as strangers write it; traces as JSON Lines
- csv_cells, parquet, yaml_files: CSV that is never calculated; pyarrow; YAML on top of YAML
- label_patch: corrections of a benchmark's labels as a file
"""
