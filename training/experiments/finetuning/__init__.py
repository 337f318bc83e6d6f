"""Fine-tuning causal language models on subsets of a pool, and grading their answers with math-verify.

Start with `sft.fine_tune` and `math500.measure`. `study.run_study` does both for every subset of a pool.
"""
