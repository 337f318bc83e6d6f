"""StrictPRMBench as its authors publish it, for some of its problems, on a server of this machine."""

import hashlib
import json
from dataclasses import replace
from typing import Any

from stepsight.storage.importers.catalogue import PublicFile, find_benchmark

# Of these problems every deletion is of one of the candidates whose texts are here.
PROBLEMS = ("gsm8k_084", "gsm8k_137", "gsm8k_259")
_POOLS = "pools/bon_candidates/gsm8k_full_500"


def publish(data, public, problems=PROBLEMS):
    """Hand out the files with the traces and scores of some problems, and return the benchmark of them."""
    folder = data / "prm-scores"
    pools: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(folder / "gsm8k_candidates.jsonl", problems):
        pools.setdefault(row["problem_id"], []).append(_published(row))
    files = {
        f"{_POOLS}/{problem}.json": json.dumps({"problem_id": problem, "candidates": rows}, indent=2).encode()
        for problem, rows in pools.items()
    }
    for kind in ("necessary", "inert"):
        edits = _rows(folder / "deletions" / f"gsm8k_{kind}_pairs.jsonl", problems)
        files[f"edits/gsm8k_{kind}_matched.jsonl"] = _lines(
            [
                {key: row[key] for key in ("problem_id", "candidate_index", "deleted_step_index_0based")}
                | {"pair_type": kind, "original_trace": _published(row)}
                for row in edits
            ]
        )
    published = find_benchmark("strict-prmbench")
    # It is nobody's part.
    manifest = f"{'0' * 64}  ./README.md\n" + "".join(
        f"{hashlib.sha256(files[path]).hexdigest()}  ./{path}\n" for path in sorted(files)
    )
    files["manifest.sha256"] = manifest.encode()
    scores = []
    for score in published.scores:
        where = "scores" if "step_scores_cache" in score.file.url else "deletions"
        content = _lines(_rows(folder / where / score.file.name, problems))
        files[score.file.name] = content
        file = _file(public, score.file.name, content)
        scores.append(replace(score, file=file, size=len(content)))
    public.files |= {f"/{path}": content for path, content in files.items()}
    file = _file(public, "manifest.sha256", files["manifest.sha256"])
    size = sum(map(len, files.values())) - sum(score.size or 0 for score in scores)
    return replace(published, file=file, size=size, scores=tuple(scores))


def _file(public, name, content):
    return PublicFile(name, f"{public.url}/{name}", hashlib.sha256(content).hexdigest())


def _rows(path, problems):
    with open(path, encoding="utf-8") as file:
        return [row for row in map(json.loads, file) if row["problem_id"] in problems]


def _published(row):
    problem = {"question": row["problem"], "ground_truth": row.get("answer")}
    facts = {key: row[key] for key in ("extracted_answer", "is_correct") if key in row}
    return {"problem": problem, "steps": [{"text": step} for step in row["steps"]]} | facts


def _lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
