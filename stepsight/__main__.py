"""Entry point for `python -m stepsight`, which runs the `stepsight` command."""

from stepsight.app.commands.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
