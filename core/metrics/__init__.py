"""Metrics of evaluators against gold, and of people among themselves. What has no value is NaN, with the reason.

- table, items, value: gold and scores as columns; input of two-class metrics; a number or its absence
- reasoneval, prmscore: the paper's protocol: solution and step F1 and AUC; PRMBench's score
- binary, ternary, first_error, position: two classes; three; first errors; by place in the solution
- calibration: calibration error and its curve
- bootstrap, paired: intervals; paired differences and tests
- baselines, published: evaluators that read nothing; the figures that the paper prints
- best_of_n: choosing among solutions
- krippendorff, kappa, ratings: agreement between annotators
"""
