"""The subcommands of `stepsight`, a module each, in folders by subject.

A module has its command's name: `stepsight import-scores` is `data/import_scores.py`, and a name that Python
reserves gets a `_` (`data/import_.py`). Its docstring says what the command is for, with lines to run;
`add_arguments(parser)` declares the options and may set `parser.description`; `run(args)` does the work.

`cli` lists the commands, each with its folder and a line of help. It imports a module only when its command is
asked for, so a command imports what it needs at its top, and `stepsight --help` stays quick.
"""
