"""The paper's experiments, each in its folder."""
