"""The evaluator and its arithmetic: no database, no web page, no training loop.

- label, trace: the three labels; a problem with its steps
- text: pasted text into steps
- scores, judgment: probabilities, verdicts, the hindsight triangle; what an evaluator says of a trace
- notebook: how these draw themselves in a notebook
- evidence: how later steps changed verdicts on earlier ones
- errors, validation: `UserError`; pydantic's errors as such
- places: shipped assets, the folder of data, the cache
- files: reading and writing JSON, JSON Lines, CSV, YAML, corrections of labels
- templates, arrays: Jinja2 templates, types of arrays
- description: what is known of an evaluator that is not loaded
- hubs: evaluators on a model hub, and those fetched from one
- models: a checkpoint in memory: backbone, head, placement
- formats: the layouts of checkpoints, one module each, and finding one
- prompts: a trace as token ids
- servers, critics: asking evaluators that run elsewhere, and those that write their verdicts
- evaluators: all kinds of them, loaded
- scoring: traces into judgments, and the evidence in them
- metrics: judgments against gold, people against people, and the paper's figures
"""
