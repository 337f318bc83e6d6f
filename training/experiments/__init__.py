"""The paper's experiments, each in its own folder: the grid, data filtering, fine-tuning and reranking."""
