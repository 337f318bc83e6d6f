"""The paper's tables, figures and numbers compared with StepSight's own. Start with `make_paper_report`."""
