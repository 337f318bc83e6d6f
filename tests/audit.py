"""Holes that are known in what a server needs: pip-audit over `requirements-hashed.txt`.

python -m tests.audit .venv/tools/bin/pip-audit

ends with 1 where there are any, and with 2 where the database of known holes did not answer for every package.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements-hashed.txt"


def summarize(report):
    """The exit code and the words for a report in pip-audit's JSON."""
    packages = report["dependencies"]
    lines = [
        f"{one['name']} {one['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'no version'}"
        for one in packages
        for hole in one.get("vulns", ())
    ]
    unasked = [one["name"] for one in packages if "skip_reason" in one]
    if unasked:
        lines += [
            f"The database did not answer for {len(unasked)} of {len(packages)} packages.",
            "Run this where it can be reached.",
        ]
    if len(lines) == 0:
        return 0, f"No hole is known in {len(packages)} packages."
    return (1 if any(one.get("vulns") for one in packages) else 2), "\n".join(lines)


def main(auditor):
    command = [auditor, "--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run([*command, "-r", str(REQUIREMENTS)], capture_output=True, text=True)
    try:
        code, words = summarize(json.loads(done.stdout))
    except ValueError:
        code, words = 2, "The database of known holes cannot be reached. Run this where it can."
    print(words)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
