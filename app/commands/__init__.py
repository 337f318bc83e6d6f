"""The subcommands of `stepsight`, one module each, which has the command's name, in folders by what they are about.

`stepsight import-scores` is `data/import_scores.py`; a command whose name is a word of Python has a `_` behind it
(`data/import_.py`). A module begins with what the command is for and lines to run. Its `add_arguments(parser)`
says what the command takes, and may set `parser.description`; its `run(args)` does it.

`cli` lists the commands with a line of help each, and the folder of each. A module is imported only when its
command is asked for, so that it may import at its top whatever it needs, and `stepsight --help` waits for none of
it.

- cli: the command itself: every subcommand, and how errors end
- options: options that several of them share
- server, data, labelling, evaluation, training: the subcommands
"""
