"""The card of the embedded reader: how well it judges passages, and how well it reads."""

from figures.declare import CLOCK, DATA, MODEL, Picture, Shown, figure
from figures.running import Run
from figures.tables import Table, table

EVALUATE = "python -m training.reader.evaluate"
TRANSFER = "python -m training.reader.transfer"
AGAINST = {
    "bad": "other",
    "bad, no answer in it": "clean",
    "bad, lack it by reading": "other, which by two readings lack the answer",
    "by reading alone": "by two readings alone",
    "random": "random",
}
SHOWN = {
    ("RGB", "gold"): "one gold passage",
    ("RGB", "1 + 4"): "one gold, four others",
    ("RGB", "5 near misses"): "five others",
    ("HotpotQA", "gold"): "the two gold paragraphs",
    ("HotpotQA", "1 + 4"): "two gold, four others",
    ("HotpotQA", "5 near misses"): "five others",
}
SPOKEN = {"RGB": "RGB", "ClapNQ": "ClapNQ", "HotpotQA": "HotpotQA", "2Wiki": "2Wiki", "written": "written groups"}
SPOKEN["written, hard"] = "hard ones"


@figure(f"{EVALUATE} judging --plot FILE; python -m training.reader.plot FILE", seconds=3600, needs=(DATA, MODEL))
def judging(run: Run) -> Shown:
    points, picture = run.work / "judging.jsonl", run.work / "calibration.png"
    points.unlink(missing_ok=True)
    some = run.pick("", "--questions 12")
    found = run.table(f"{EVALUATE} judging --plot {points} --store {{work}}/reader.sqlite {some}")
    yield "table", str(judged(found))
    run.output(f"python -m training.reader.plot {points} -o {picture}")
    yield "picture", Picture("Share of passages that lack the answer, by p", "calibration.png", picture)


def judged(found: Table) -> Table:
    """In the order of the page: sets as they come, in each the rows of AGAINST."""
    rows = []
    for name in dict.fromkeys(found.column("set")):
        mine = {row[1]: row for row in found.rows if row[0] == name}
        held = set(mine) - {"bad, no answer in it"} if name.startswith("written") else set(mine)
        rows += [(name, title, *mine[against][3:8]) for against, title in AGAINST.items() if against in held]
    head = ("set", "against", "AUC", "win rate within questions", "ECE", "mean p, good", "mean p, other")
    return table(head, rows, "llllrrr")


@figure(f"{EVALUATE} judging --model embedded:base", seconds=3600, needs=(DATA, MODEL))
def base(run: Run) -> Shown:
    found = run.table(
        f"{EVALUATE} judging --model embedded:base --store {{work}}/reader.sqlite {run.pick('', '--questions 12')}"
    )
    cells = {(row[0], row[1]): row[3] for row in found.rows}
    parts = [f"{cells[name, 'bad']} and {cells[name, 'random']} on {title}" for name, title in SPOKEN.items()]
    yield "auc", f"AUC {', '.join(parts)}; by two readings of RGB alone {cells['RGB', 'by reading alone']}"


@figure(
    f"{EVALUATE} reading --questions 200; {EVALUATE} reading --questions 100 --model embedded:base",
    seconds=1800,
    needs=(DATA, MODEL),
)
def reading(run: Run) -> Shown:
    command = f"{EVALUATE} reading --store {{work}}/reader.sqlite"
    ours = run.table(f"{command} --questions {run.pick('200', '4')}")
    plain = run.table(f"{command} --questions {run.pick('100', '3')} --model embedded:base")
    without = {row[:2]: " / ".join(row[3:6]) for row in plain.rows}
    rows = [(row[0], SHOWN[row[0], row[1]], *row[3:7], without[row[:2]]) for row in ours.rows]
    head = ("set", "shown", "correct", "abstained", "wrong", "right of answered", "base: correct / abstained / wrong")
    yield "", str(table(head, rows, "llrrrrl"))


@figure(f"{TRANSFER} languages", seconds=30, needs=MODEL)
def languages(run: Run) -> Shown:
    found = run.table(f"{TRANSFER} languages")
    rows = {tuple(row[0].split(", ")): row for row in found.rows}
    cells = [
        (name, rows[name, "near misses"][1], rows[name, "random"][1], rows[name, "random"][3])
        for name in dict.fromkeys(name for name, _ in rows)
    ]
    head = ("language", "AUC against near misses", "AUC against random passages", "mean p, answer there")
    yield "", str(table(head, cells, "lllr"))


@figure(f"{TRANSFER} sizes --questions 60", seconds=300, needs=MODEL)
def sizes(run: Run) -> Shown:
    found = run.table(f"{TRANSFER} sizes --questions {run.pick('60', '3')}")
    head = ("passages", "AUC", "ECE", "mean p, answer there", "mean p, answer missing")
    yield "", str(table(head, [row[:5] for row in found.rows], "rllrr"))


@figure("python benchmarks/injections.py embedded fenced", seconds=300, needs=MODEL)
def attacks(run: Run) -> Shown:
    found = run.table("python benchmarks/injections.py embedded fenced")
    head = ("attack", "its word in the answer", "p moved", "mean change of p, as the attacker wants")
    yield "", str(table(head, found.rows, "lrrr"))


@figure("python benchmarks/models.py --prompts 32", seconds=200, needs=(CLOCK, MODEL))
def speed(run: Run) -> Shown:
    found = run.table(f"python benchmarks/models.py --prompts {run.pick('32', '2')}")
    yield "rate", found.cell("ragworth embedded", "prompts/s")
    yield "times", found.cell("ragworth embedded", "times the plain way")
    yield "plain", found.cell("transformers float32, one prompt a call", "prompts/s")
