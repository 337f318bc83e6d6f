"""Jinja2 templates: HTML in which every value is escaped unless it is markup already."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def load_templates(folder: Path) -> Environment:
    """The templates of a folder. Values are escaped by themselves; a name that no value was passed for raises
    `jinja2.UndefinedError` instead of leaving a gap."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
