"""Metrics of evaluators against gold, and of people among themselves. What has no value is NaN, with the reason.

- table, items, value: gold and scores as columns, by position; input of two-class metrics; a number or its absence
- reasoneval, prmscore: the paper's protocol: solution and step F1 and AUC; PRMBench's score
- binary, ternary, first_error: two classes, and two evaluators on them; three classes; first errors
- calibration: calibration error and its curve
- bootstrap: resamples, intervals and paired differences
- baselines, published: evaluators that read nothing; the figures that the paper prints
- best_of_n: choosing among solutions
- agreement, ratings: Krippendorff's alpha and Cohen's kappa; the labels that annotators gave
"""
