"""What makes or measures an evaluator.

- synth: the synthetic corpus: solutions with planted errors and later evidence
- data: training traces: sources, mixture, leakage, tokenizer, examples
- train: a training run: configuration, start, trainer, estimate
- runs: what everything that runs long shares: folder, lock, checkpoints, progress
- evaluate: what evaluators reach on a dataset, and thresholds
- report: measurements as tables, figures and pages
- experiments: grid, filtering, fine-tuning, reranking: what only they do
"""
