"""docs/findings.md: what metrics, models and people do on real data."""

import json
from collections.abc import Iterator

from figures.declare import DATA, MODEL, Shown, figure
from figures.demo import Evaluated, evaluated
from figures.running import Run
from figures.studies import Row, spanned, study
from figures.tables import Table, table

OUTCOMES = ("sas", "F1")
VASWANI = {
    "oracle": "oracle",
    "bm25-stems": "BM25, stop words and stems",
    "bm25": "BM25",
    "reversed": "the first ten of BM25 with stems, last one first",
    "random": "random",
    "adversary": "adversary: the best that nobody calls relevant",
}
SIZES = (1, 2, 5, 10, 20)
PEOPLE = {
    "ClapNQ": ("faithfulness", "fluency", "answer_relevance"),
    "MT-RAG": ("faithfulness", "naturalness", "completeness", "appropriateness"),
}
AUTOMATIC = {
    "Bert-KPrec (published; against the passages)": "Bert-KPrec",
    "RougeL (published; against the accepted answer)": "RougeL",
    "token F1 (ours; against the accepted answer)": "token F1 (ours)",
    "ROUGE-L (ours; against the accepted answer)": "ROUGE-L (ours)",
    "rb_llm (published; a model as judge)": "rb_llm",
    "rl_f (published; a model as judge of faithfulness)": "rl_f",
}


def few(run: Run) -> str:
    """Fewer resamples for a trial."""
    return run.pick("", "--resamples 100")


# ARAGOG


def predicted(run: Run, *options: str) -> tuple[Table, Table, Table]:
    """The tables of benchmarks/findings.py on ARAGOG: sas, F1, and whether an answer is given."""
    folder = run.workspace("aragog", *options)
    evaluated(run, folder)
    sas, f1, given = run.tables(f"python benchmarks/findings.py {folder} {few(run)}")
    return sas, f1, given


def p_values(found: Table) -> dict[str, str]:
    return dict(zip(found.column(""), found.column("p against the best"), strict=True))


@figure(
    "python benchmarks/workspaces.py aragog work/aragog; ragworth evaluate work/aragog; "
    "python benchmarks/findings.py work/aragog",
    seconds=180,
    needs=DATA,
)
def aragog(run: Run) -> Shown:
    sas, f1, given = predicted(run)
    names = ("ρ, all contexts", "τ, within a query", "τ, systems")
    sides = [found.only(*names).rows for found in (sas, f1)]
    rows = [(metric, *a, *b) for metric, a, b in zip(sas.column(""), *sides, strict=True)]
    titles = ("ρ, all contexts", "τ, within a question", "τ, systems")
    head = ("", *(f"{outcome}: {title}" for outcome in OUTCOMES for title in titles))
    yield "correlations", str(table(head, rows, "lllllll"))
    first, second = p_values(sas), p_values(f1)
    tests = [(name, first[name], second[name], auc) for name, auc in given.rows]
    head = ("", "sas: p against Success@3", "F1: p against Success@3", "an answer given: AUC")
    yield "tests", str(table(head, tests, "lrrl"))


@figure(
    "python benchmarks/workspaces.py aragog work/half --threshold 0.5; ragworth evaluate work/half; "
    "python benchmarks/findings.py work/half",
    seconds=180,
    needs=DATA,
)
def half(run: Run) -> Shown:
    sas, f1, given = predicted(run, "--threshold", "0.5")
    names = ("ρ, all contexts", "τ, within a query", "p against the best")
    sides = [found.only(*names).rows for found in (sas, f1)]
    aucs = dict(zip(given.column(""), given.rows, strict=True))
    rows = [(metric, *a, *b, aucs[metric][1]) for metric, a, b in zip(sas.column(""), *sides, strict=True)]
    head = ("", "sas: ρ", "sas: τ, within", "p", "F1: ρ", "F1: τ, within", "p", "an answer given: AUC")
    yield "", str(table(head, rows, "lllrllrl"))


@figure(
    "ragworth study alignment work/aragog/results --outcome sas --measure kendall; the same with --outcome f1",
    seconds=120,
    needs=DATA,
)
def alignment(run: Run) -> Shown:
    folder = run.workspace("aragog")
    evaluated(run, folder)
    found = study(run, f"alignment {folder}/results --outcome sas --measure kendall {few(run)}")
    best = found.tables["alignment"][0]
    yield "sas", spanned(best, "correlation")
    yield "questions", str(best["queries"])
    title = "Kendall τ-b of ten metrics with sas, within questions"
    yield "picture", found.picture("alignment", "images/findings-alignment.png", title)
    other = study(run, f"alignment {folder}/results --outcome f1 --measure kendall {few(run)}")
    yield "f1", spanned(other.tables["alignment"][0], "correlation")


@figure(
    r"ragworth study top-k work/aragog/results --outcome f1 --least 50 --same '__(top_k|chunk_size)=\d+'",
    seconds=120,
    needs=DATA,
)
def top_k(run: Run) -> Shown:
    folder = run.workspace("aragog")
    evaluated(run, folder)
    same = r"'__(top_k|chunk_size)=\d+'"
    found = study(run, f"top-k {folder}/results --outcome f1 --least 50 --same {same} {few(run)}")
    parts: dict[str, list[Row]] = {"narrow": [], "wide": []}
    for row in found.tables["correlations"]:
        if row["system"] == "all systems" and row["K/N_p"] in parts:
            parts[row["K/N_p"]].append(row)
    for name, rows in parts.items():
        yield f"{name}-contexts", f"{rows[0]['contexts']:,}"
        values = [row["correlation"] for row in rows]
        yield f"{name}-range", f"{min(values):.2f} to {max(values):.2f}"
        best = max(rows, key=lambda row: float(row["correlation"]))
        yield f"{name}-best", spanned(best, "correlation")
    where = "by embedder, where fewer and where more passages are shown than are relevant"
    title = f"Spearman's ρ with F1 of ten metrics, {where}"
    yield "picture", found.picture("parts", "images/findings-top-k.png", title)


# TREC DL 2019


@figure(
    "python benchmarks/workspaces.py dl19 work/dl19; ragworth evaluate work/dl19; ragworth study context-size "
    "work/dl19/results --sizes 1-10,15,20 --measure kendall --against 'Cov(eta=4)' -m nDCG@20 -m 'P(rel=2)@20'",
    seconds=120,
    needs=DATA,
)
def coverage(run: Run) -> Shown:
    folder = run.workspace("dl19")
    evaluated(run, folder)
    options = "--sizes 1-10,15,20 --measure kendall --against 'Cov(eta=4)' -m nDCG@20 -m 'P(rel=2)@20'"
    found = study(run, f"context-size {folder}/results {options} {few(run)}")
    cells = {
        (row["over"], row["metric"][0], row["k"]): spanned(row, "correlation") for row in found.tables["correlation"]
    }
    columns = [(over, letter) for over in ("systems", "queries") for letter in ("n", "P")]
    rows = [(size, *(cells[over, letter, size] for over, letter in columns)) for size in SIZES]
    titles = ("nDCG: τ over systems", "P: τ over systems", "nDCG: τ within queries", "P: τ within queries")
    yield "sizes", str(table(("passages shown", *titles), rows, "rllll"))
    title = "Kendall τ-b of systems' means by relevance and by coverage, from 1 to 20 passages"
    yield "picture", found.picture("correlation-systems", "images/findings-context-size.png", title)


@figure("ragworth study judges work/dl19/relevant.csv --reference assessors", seconds=20, needs=DATA)
def lenient(run: Run) -> Shown:
    found = study(run, f"judges {run.workspace('dl19')}/relevant.csv --reference assessors {few(run)}")
    pair = found.row("pairs", first="assessors", second="some rating ≥ 4")
    yield "passages", f"{pair['items']:,}"
    yield "kappa", spanned(pair, "κ")
    for stars in (4, 5):
        row = found.row("reference", judge=f"some rating ≥ {stars}", label="yes")
        yield f"precision-{stars}", spanned(row, "precision")
        yield f"recall-{stars}", spanned(row, "recall")


# NoMIRACL


@figure(
    "python benchmarks/findings.py nomiracl; python benchmarks/workspaces.py nomiracl work/nomiracl; "
    "ragworth study judges work/nomiracl/nomiracl.csv --reference truth",
    seconds=20,
    needs=DATA,
)
def nomiracl(run: Run) -> Shown:
    counts = run.table("python benchmarks/findings.py nomiracl")
    found = study(run, f"judges {run.workspace('nomiracl')}/nomiracl.csv --reference truth {few(run)}")
    kappas = {}
    for row in found.tables["pairs"]:
        if "truth" in (row["first"], row["second"]):
            kappas[row["first"] if row["second"] == "truth" else row["second"]] = spanned(row, "κ")
    rows = [(*row, kappas[row[0]]) for row in counts.rows]
    yield "models", str(table((*counts.head, "κ with the truth"), rows, "lrrrrl"))
    alpha = next(row for row in found.tables["together"] if row["measure"].startswith("Krippendorff α"))
    yield "alpha", spanned(alpha)
    title = "Cohen's κ between every two models, and with the truth"
    yield "picture", found.picture("pairs", "images/findings-judges.png", title)


# ClapNQ and MT-RAG


@figure(
    "python benchmarks/workspaces.py clapnq work/clapnq; ragworth study judges work/clapnq/clapnq.csv; also mtrag",
    seconds=20,
    needs=DATA,
)
def people(run: Run) -> Shown:
    rows = []
    for title, aspects in PEOPLE.items():
        name = title.replace("-", "").lower()
        found = study(run, f"judges {run.workspace(name)}/{name}.csv {few(run)}")
        for aspect in aspects:
            measures = ("Fleiss κ", "Krippendorff α, ordinal", "Krippendorff α, interval")
            cells = [spanned(found.row("together", aspect=aspect, measure=measure)) for measure in measures]
            rows.append((title, aspect.replace("_", " "), *cells))
    head = ("collection", "people on", "Fleiss κ", "Krippendorff α, ordinal", "α, interval")
    yield "agreement", str(table(head, rows, "lllll"))


@figure("python benchmarks/findings.py clapnq mtrag", seconds=180, needs=DATA)
def automatic(run: Run) -> Shown:
    parts = run.tables(f"python benchmarks/findings.py clapnq mtrag {few(run)}")
    titles = ("ClapNQ: ρ, all answers", "without the accepted", "MT-RAG: ρ, all answers", "without the accepted")
    known = [{row[1]: row[2] for row in part.rows if row[0] == "faithfulness"} for part in parts]
    rows = [(title, *(part.get(name, "–") for part in known)) for title, name in AUTOMATIC.items()]
    yield "", str(table(("", *titles), rows, "lllll"))


# RGB and questions of several hops


@figure("ragworth study alignment work/rgb work/multihop --protocol paper", seconds=3000, needs=(DATA, MODEL))
def rgb(run: Run) -> Shown:
    places = f"{run.workspace('rgb')} {run.workspace('multihop')}"
    options = run.pick("--limit 50", "--limit 4 --resamples 100")
    found = study(run, f"alignment {places} --protocol paper {options}")
    first, second = dict.fromkeys(row["case"] for row in found.tables["alignment"])
    names = {"udcg": "UDCG@5", "precision": "P@5", "ndcg": "nDCG(ideal=retrieved)@5"}
    mine = {short: found.row("alignment", case=first, metric=name) for short, name in names.items()}
    yield "questions", str(mine["udcg"]["queries"])
    for short, row in mine.items():
        yield short, spanned(row, "correlation")
    ablation = run.output(f"ragworth train ablation {found.folder}/cases/01 -f json {run.pick('', '--resamples 100')}")
    gaps = json.loads(ablation)["differences"]
    yield "gap", spanned(next(row for row in gaps if row["of"].startswith("UDCG@5 − nDCG")), "difference")
    yield "hops", spanned(found.row("alignment", case=second, metric="P@5"), "correlation")
    title = "Spearman's ρ of eight metrics with the grade, within questions of RGB and of multi-hop questions"
    yield "picture", found.picture("alignment", "images/findings-rgb.png", title)


@figure("ragworth study noise work/rgb --protocol paper --limit 100", seconds=900, needs=(DATA, MODEL))
def noise(run: Run) -> Shown:
    found = study(run, f"noise {run.workspace('rgb')} --protocol paper {run.pick('--limit 100', '--limit 6')}")
    for name, measure in (("key", "KeyEntropy"), ("all", "Entropy")):
        yield name, f"{100 * found.row('concordance', confidence=measure)['right']:.1f} %"
    for name in ("random", "retrieved"):
        yield name, f"{100 * found.row('answers', context=f'with {name}')['correct']:.1f} %"
    yield "p", f"{found.row('differences', measure='correct')['p']:.3f}"


# Vaswani


@figure("python benchmarks/workspaces.py vaswani work/vaswani; ragworth evaluate work/vaswani", seconds=20, needs=DATA)
def vaswani(run: Run) -> Shown:
    found = evaluated(run, run.workspace("vaswani"))
    yield "systems", str(table(("system", "group", "nDCG@10", "AP", "P@10"), leaderboard(found), "lllll"))
    gain = found.systems["bm25-stems"]["sentence"]
    yield "stems", gain.partition(" by ")[2].partition(" ")[0]
    more = found.systems["reversed"]["metrics"]["P@10"]["mean"] / found.systems["bm25"]["metrics"]["P@10"]["mean"] - 1
    yield "shown", f"{100 * more:.0f} %"


def leaderboard(found: Evaluated) -> Iterator[tuple[str, ...]]:
    for name, title in VASWANI.items():
        means = (found.mean(name, metric, interval=True) for metric in ("nDCG@10", "AP", "P@10"))
        yield title, found.systems[name]["group"], *means
