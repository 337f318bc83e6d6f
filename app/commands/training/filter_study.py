"""Run the data-filtering experiment, from the pool of solutions to the table of results.

stepsight filter-study training/configs/filter-mini.yaml --output runs/filter-mini --jobs 2
"""

import argparse
import sys
from pathlib import Path

from stepsight.app.options.shared import positive
from stepsight.training.experiments.finetuning.report import make_filtering_report
from stepsight.training.experiments.finetuning.study import read_study, run_study
from stepsight.training.report.report import write_report
from stepsight.training.report.table_files import to_markdown
from stepsight.training.runs.processes import MachineShare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Choose subsets of a pool, fine-tune a causal language model on each with each seed, and "
        "measure it on MATH-500. Stop it when you like; the same command resumes. Needs stepsight[sft]."
    )
    parser.add_argument("config", type=Path, help="a YAML file, such as training/configs/filter-mini.yaml")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="default: runs/ and the file's name")
    parser.add_argument(
        "--jobs", type=positive(int), metavar="N", help="the number of runs at once (default: as many as fit)"
    )


def run(args: argparse.Namespace) -> None:
    """Run the study, or resume an interrupted run, then write its report and print a table like the paper's."""
    study = read_study(args.config)
    output = args.output or Path("runs") / args.config.stem
    jobs = args.jobs or MachineShare(study.processes, study.threads).room()
    count = len(study.evaluators) * len(study.subsets) * len(study.seeds)
    print(f"{count} runs into {output}, {jobs} at a time; the same command goes on.", file=sys.stderr)
    run_study(study, args.config.parent, output, jobs)
    report = make_filtering_report([output])
    print(to_markdown(report.tables[0]))
    print(write_report(report, output))
