"""The subcommands of `stepsight`: one module for each, in folders by subject.

A module is named after its command, so `stepsight import-scores` is `data/import_scores.py`. If the name is
reserved in Python, it gets a trailing `_` (`data/import_.py`). The module's docstring says what the command is for
and gives example command lines. `add_arguments(parser)` declares the options and may set `parser.description`, and
`run(args)` carries out the command.

`cli` lists the commands, each with its folder and a line of help. It imports a module only when its command is run.
A command can therefore import what it needs at the top of its module, and `stepsight --help` stays fast.
"""
