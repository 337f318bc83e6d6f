"""What is learnt from: sources, mixture, examples."""
