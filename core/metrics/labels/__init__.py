"""What is measured of labels that people give: their agreement, which traces to label first and what follows for
the others, doubtful labels, and the links that people name. Start with `Ratings`."""
