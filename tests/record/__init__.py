"""What the product does, recorded before it is rebuilt: pages, commands, files, checks and probabilities.

`python -m tests.record write` runs everything on a fixed store and writes what came out to `tests/record/data`;
`python -m tests.record compare` runs it again and shows what differs. A difference is a fault, or is named in the
commit that makes it. Each part is a module with a function `record(scene)` that yields names and texts.
"""
