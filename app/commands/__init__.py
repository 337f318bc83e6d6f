"""The commands of `stepsight`, in modules by subject.

The command `import-scores` is `import_scores_command` of `data`: a function that carries it out, under a decorator
with its options. `cli` lists the commands with their modules, and imports a module only when one of its commands is
run, so that `stepsight --help` stays fast. Commands that need PyTorch are apart from those that do not.
"""
