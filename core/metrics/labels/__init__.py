"""Measurements of labels from people: agreement, the choice of traces to label first and the estimates that follow
from them, doubtful labels, and links to later steps. Start with `Ratings`."""
