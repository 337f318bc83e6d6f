"""The paper's experiments: the grid, data filtering, fine-tuning and reranking, each in its own folder."""
