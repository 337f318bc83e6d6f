"""Measurements of labels from people: agreement, doubtful labels, links to later steps. Start with `Ratings`."""
