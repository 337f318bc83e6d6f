"""The commands that train evaluators and fine-tune language models, and that run experiments with them.

stepsight train training/configs/mini-bidir.yaml --output runs/mini-bidir
stepsight grid training/configs/grid-mini-random.yaml --output runs/grid-mini-random --jobs 2
stepsight filter MMIQC.parquet --where source=MATH --sample 10000 --evaluator runs/llada-prm-8b --output runs/mmiqc
stepsight sft training/configs/mistral-7b-sft.yaml --data subsets/red.jsonl --seed 42 --output runs/red-42
stepsight math500 runs/red-42 runs/red-43 runs/red-44 --output runs/red-math500
stepsight filter-study training/configs/filter-mini.yaml --output runs/filter-mini --jobs 2
torchrun --nproc-per-node 4 -m stepsight train CONFIG.yaml --output FOLDER
"""

import sys
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import torch

from stepsight.app.options.command import (
    DB,
    PLACEMENT,
    REDUNDANCY,
    VALIDITY,
    command,
    described,
    fields_of,
    flag,
    one_evaluator,
    option,
    positive,
    read_fields,
    read_placement,
    repeated,
)
from stepsight.core.errors import UserError, counted
from stepsight.core.models.checkpoint import model_name
from stepsight.core.validation import update
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.answers import Grader
from stepsight.training.experiments.filtering.pool import BOTH, SUBSETS, import_pool
from stepsight.training.experiments.filtering.run import MANIFEST, Filtering, filter_pool, summary
from stepsight.training.experiments.finetuning.math500 import MATH500, Exam, measure
from stepsight.training.experiments.finetuning.recipe import read_recipe
from stepsight.training.experiments.finetuning.report import make_filtering_report, result_tables
from stepsight.training.experiments.finetuning.sft import estimate_fine_tuning, fine_tune, model_folder
from stepsight.training.experiments.finetuning.study import read_study, run_study
from stepsight.training.experiments.grid.design import Design, RunSettings, read_design
from stepsight.training.experiments.grid.experiment import Grid
from stepsight.training.experiments.grid.results import WHOLE
from stepsight.training.report.report import write_report
from stepsight.training.report.tables import to_markdown
from stepsight.training.runs.processes import MachineShare, is_main_process
from stepsight.training.runs.progress import progress_bars
from stepsight.training.train.config import read_config
from stepsight.training.train.estimate import check_devices, estimate_run
from stepsight.training.train.run import train

_PLAN = flag("--plan", "print the estimated needs, and load nothing")
_RESOURCES = (
    option("--threads N", "processor threads to use", type=positive(int)),
    _PLAN,
    option("--gpu GIB", "with --plan: the memory of a GPU (default: the recipe's)", type=positive(float)),
    option("--devices N", "with --plan: on N GPUs (default: the recipe's)", type=positive(int)),
)
_JOBS = option("--jobs N", "the number of runs at once (default: as many as fit)", type=positive(int))
_OUTPUT = option("--output FOLDER", "default: runs/ and the file's name", type=Path)


def _use_resources(args: Namespace) -> None:
    """Use the number of threads that is given. Raises `UserError` if --gpu or --devices is given without --plan."""
    if not args.plan and (args.gpu or args.devices):
        raise UserError(
            "--gpu and --devices require --plan.", "Otherwise torchrun's processes determine the devices."
        )
    if args.threads and not args.plan:
        torch.set_num_threads(args.threads)


@command(option("config", "a YAML file; training/configs holds the shipped ones", type=Path), _OUTPUT, *_RESOURCES)
def train_command(args: Namespace) -> None:
    """Train an evaluator. On several devices: torchrun --nproc-per-node N -m stepsight train ..., or accelerate
    launch; a step's traces are divided among them, and the result is that of one device."""
    config, folder = read_config(args.config), args.config.parent
    _use_resources(args)
    if args.plan:
        estimate = estimate_run(config, folder, args.gpu, args.devices)
        print(estimate)
        estimate.check()
        return
    check_devices(config, folder)
    output = args.output or Path("runs") / args.config.stem
    if is_main_process():
        print(f"Training into {output}; stop it whenever you like, the same command resumes.", file=sys.stderr)
    train(config, output, folder)
    if is_main_process():
        print(output)


@command(
    option("config", "a YAML file, such as training/configs/mistral-7b-sft.yaml", type=Path),
    option("--init MODEL", "a folder or a hub's OWNER/NAME (default: the recipe's)"),
    option("--data FILE", "JSON Lines with query and response (default: the recipe's)"),
    option("--seed N", "default: the recipe's", type=int),
    option("--output FOLDER", "default: runs/, the recipe, subset and seed", type=Path),
    *_RESOURCES,
)
def sft_command(args: Namespace) -> None:
    """Fine-tune a causal language model. On several devices: torchrun --nproc-per-node N -m stepsight sft .... Stop
    it when you like; the same command resumes."""
    _use_resources(args)
    # A path on the command line is relative to the current folder, not to the recipe.
    data = None if args.data is None else str(Path(args.data).absolute())
    options = {"init": args.init, "seed": args.seed, "data": data}
    recipe = update(read_recipe(args.config), **{key: value for key, value in options.items() if value is not None})
    if args.plan:
        estimate = estimate_fine_tuning(recipe, args.config.parent, args.gpu, args.devices)
        print(estimate)
        estimate.check()
        return
    output = args.output or Path("runs") / f"{args.config.stem}-{Path(recipe.data or '').stem}-{recipe.seed}"
    fine_tune(recipe, args.config.parent, output)
    if is_main_process():
        print(output)


@command(
    option("config", "a YAML file; training/configs holds the shipped ones", type=Path),
    _OUTPUT,
    _JOBS,
    _PLAN,
    option("--gpu GIB", "with --plan: the memory of a GPU", type=positive(float)),
    repeated("--size NAME", "only this size; may be repeated"),
    repeated("--data NAME", "only this amount of data; may be repeated"),
    repeated("--mask NAME", "only this mask; may be repeated"),
    repeated("--seed NAME", "only this seed; may be repeated"),
    flag("--no-store", "do not save judgments in the store"),
    DB,
)
def grid_command(args: Namespace) -> None:
    """Train every run of a grid and measure it. Stop it when you like; the same command resumes. Without --size,
    --data, --mask and --seed all runs are done."""
    design = read_design(args.config)
    runs = _select_runs(design, args)
    if args.plan:
        # The cost does not depend on mask or seed.
        for run in {(run.size, run.data): run for run in runs}.values():
            estimate = estimate_run(design.config(run), args.config.parent, args.gpu, design.processes)
            print(f"{run.size} {run.data}\n{estimate}\n")
        print(counted(len(runs), "run"))
        return
    if args.gpu:
        raise UserError("--gpu requires --plan.")
    output = args.output or Path("runs") / args.config.stem
    jobs = args.jobs or MachineShare(design.processes, design.threads).room()
    print(
        f"{counted(len(runs), 'run')} into {output}, {jobs} at a time; the same command resumes.", file=sys.stderr
    )
    db = str(output / "store.db") if args.no_store else args.db
    results = Grid(design, args.config, output, db, args.db).run(runs, jobs)
    print(f"{len(results.runs)} of {results.planned} runs are done.", file=sys.stderr)
    print(output / WHOLE)


def _select_runs(design: Design, args: Namespace) -> list[RunSettings]:
    """Return the runs that the options select, or all runs if they select none."""
    masks = tuple(dict.fromkeys(run.mask for run in design.runs()))
    options: dict[str, Iterable[object]] = {
        "size": design.sizes,
        "data": design.data,
        "mask": masks,
        "seed": design.seeds,
    }
    for key, values in options.items():
        for name in getattr(args, key) or ():
            if name not in map(str, values):
                raise UserError(f"--{key} is {name!r}, expected one of {', '.join(map(str, values))}.")
    return [
        run
        for run in design.runs()
        if all(not getattr(args, key) or str(getattr(run, key)) in getattr(args, key) for key in options)
    ]


def _match(text: str) -> str | float:
    return text if text == BOTH else positive(int)(text)


@command(
    option(
        "pool POOL",
        "JSON Lines, compressed or not, CSV or Parquet, with fields such as query and response, MMIQC's "
        "instruction and output, problem and steps, problem and solution, or question and answer",
        nargs="*",
        type=Path,
    ),
    option("--dataset NAME", "the dataset of the pool (default: named after the file), or one of the store"),
    option("--output FOLDER", "for subsets and manifest.json", type=Path, required=True),
    one_evaluator("vllm"),
    repeated("--by", "a subset to write; may be repeated (default: all four)", choices=SUBSETS),
    option("--match N", "solutions in each subset (default: as val+red has)", type=_match, default=BOTH),
    fields_of(Filtering, benchmarks="--benchmark"),
    VALIDITY,
    REDUNDANCY,
    option("--fields", "the pool's names for them (default: recognised)", nargs=2, metavar=("QUERY", "RESPONSE")),
    PLACEMENT,
    DB,
)
def filter_command(args: Namespace) -> None:
    """Score every solution of a pool once and write subsets of one size: those that are valid and not redundant,
    the most valid, the least redundant, and some at random. Rows keep their fields; query and response are written
    under these names. The pool is imported as a dataset of the store, which keeps the scores. Stop it when you
    like; the same command resumes."""
    if not args.pool and args.dataset is None:
        raise UserError("no pool to choose from.", "Name a file of solutions, or a dataset with --dataset.")
    options = Filtering(
        output=args.output,
        evaluator=args.evaluator,
        by=tuple(args.by or SUBSETS),
        match=None if args.match == BOTH else int(args.match),
        validity=args.validity,
        redundancy=args.redundancy,
        place=read_placement(args),
        **read_fields(args, described(Filtering)),
    )
    with open_store(args.db) as store, progress_bars() as watch:
        if args.pool:
            pool = import_pool(
                store, args.pool, args.dataset, args.fields, skip_bad=options.skip_bad, where=options.where
            )
        else:
            pool = find_dataset(store, args.dataset)
        manifest = filter_pool(store, pool, options, watch)
    print(summary(manifest, args.output), file=sys.stderr)
    print(args.output / MANIFEST)


@command(
    option("models MODEL", "a folder or a hub's OWNER/NAME", nargs="+"),
    option(
        "--problems FILE",
        "JSON Lines with problem and answer, here or in the folder that STEPSIGHT_DATA names (default: "
        "%(default)s)",
        default=MATH500,
    ),
    option("--output FOLDER", "for the results, with a folder per model", type=Path, required=True),
    option("--tokens N", "the most tokens in an answer (default: %(default)s)", type=positive(int), default=2048),
    option("--batch N", "problems at once (default: %(default)s)", type=positive(int), default=32),
    option(
        "--prompt TEXT",
        "the prompt, with {query} in it (default: the one that the model was fine-tuned with)",
    ),
    PLACEMENT,
)
def math500_command(args: Namespace) -> None:
    """Let models answer problems greedily, grade the answers with math-verify, and print pass@1 and the mean
    length. Stop it when you like; the same command resumes. Needs stepsight[sft]."""
    place = replace(read_placement(args), dtype=args.dtype or "float32")
    exam = Exam.read(args.problems, tokens=args.tokens, batch=args.batch, prompt=args.prompt, place=place)
    models = [model_folder(model) for model in args.models]
    outputs = [args.output / model_name(model) for model in models]
    if len(set(outputs)) < len(outputs):
        raise UserError("two models have the same name.", "Measure them into different folders.")
    with Grader() as grader, progress_bars() as watch:
        results = [
            measure(exam, model, output, grader, watch) for model, output in zip(models, outputs, strict=True)
        ]
    print("\n".join(map(to_markdown, reversed(result_tables(results)))), end="")


@command(
    option("config", "a YAML file, such as training/configs/filter-mini.yaml", type=Path),
    _OUTPUT,
    _JOBS,
)
def filter_study_command(args: Namespace) -> None:
    """Choose subsets of a pool, fine-tune a causal language model on each with each seed, and measure it on
    MATH-500. Stop it when you like; the same command resumes. Needs stepsight[sft]."""
    study = read_study(args.config)
    output = args.output or Path("runs") / args.config.stem
    jobs = args.jobs or MachineShare(study.processes, study.threads).room()
    count = counted(len(study.evaluators) * len(study.subsets) * len(study.seeds), "run")
    print(f"{count} into {output}, {jobs} at a time; the same command resumes.", file=sys.stderr)
    run_study(study, args.config.parent, output, jobs)
    report = make_filtering_report([output])
    print(to_markdown(report.tables[0]))
    print(write_report(report, output))
