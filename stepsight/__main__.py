"""Run the `stepsight` command by `python -m stepsight`."""

from stepsight.app.commands.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
