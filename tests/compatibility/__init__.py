"""Files that released versions wrote, and what has to be read from them for ever: a folder a version, made by
`python -m tests.compatibility`."""
