"""docs/labelling.md: the demo from a project to a report, with simulated labels, and pictures of the site."""

from pathlib import Path

from figures.declare import BROWSER, MODEL, Picture, Shown, figure
from figures.labelled_demo import (
    DOWN,
    ENTER,
    labelled_demo,
    picture,
    served,
    simulate_labels,
    window,
    write_example_item,
)
from figures.running import Run

SELECTION = "--task answer-grade --random-queries {queries} --judgments 3 --repeats 10"


def console(command: str, output: str) -> str:
    """A command and what it prints, as a block."""
    return f"```console\n$ {command}\n{output.strip()}\n```"


def create_project(run: Run, folder: Path) -> str:
    """The project of the page, anew; what the command prints."""
    new = f"ragworth label new demo {SELECTION.format(queries=run.pick('20', '3'))}"
    return console(new, run.output(new, folder.parent))


def label_everything(run: Run, folder: Path) -> None:
    run.output("ragworth label export demo --to labels -o demo/all-labels", folder.parent)
    file = simulate_labels(folder, folder / "all-labels")
    run.output(f"ragworth label import demo {file.relative_to(folder.parent)}", folder.parent)


def sentences(output: str, *starts: str, about: str = "") -> str:
    """The lines of an output that begin so, and are about something."""
    return "\n".join(["…", *(line for line in output.splitlines() if line.startswith(starts) and about in line)])


@figure("the commands of the page, from `ragworth label new` on", seconds=400, needs=MODEL)
def steps(run: Run) -> Shown:
    folder = labelled_demo(run)
    place = folder.parent
    yield "new", create_project(run, folder)
    label_everything(run, folder)
    yield "status", console("ragworth label status demo", run.output("ragworth label status demo", place))
    export = "ragworth label export demo -p answer-grade -o demo/human"
    yield "export", console(export, run.output(export, place))
    settings = folder / "ragworth.toml"
    text = settings.read_text(encoding="utf-8")
    named = text.replace("\n[metrics]\n", '\nfiles = ["human/consensus-outcomes.csv"]\n\n[metrics]\n', 1)
    settings.write_text(named, encoding="utf-8")
    said = run.output(f"ragworth evaluate demo {run.pick('', '--limit 12')}", place)
    settings.write_text(text, encoding="utf-8")
    yield "report", console("ragworth evaluate demo", sentences(said, "oracle: ", "bm25: "))
    judges = "ragworth study judges demo/human/outcomes.csv"
    yield "judges", console(judges, sentences(run.output(judges, place), "Human: ", about="Krippendorff"))
    estimate = "ragworth estimate demo/results --expensive demo/human/estimate-outcomes.csv -m correct"
    yield "estimate", console(estimate, run.output(estimate, place))


@figure("screenshots of `ragworth label serve demo`", seconds=400, needs=(MODEL, BROWSER))
def pictures(run: Run) -> Shown:
    folder = labelled_demo(run)
    create_project(run, folder)
    label_everything(run, folder)
    write_example_item(folder)
    run.output("ragworth label new demo --task utility --items demo/example.jsonl", folder.parent)
    with served(folder) as link, window() as driver:
        driver.get(link)
        site = "/".join(link.split("/")[:3])
        item = picture(driver, f"{site}/p/utility/label/", f"h{DOWN}{DOWN}{ENTER}1", run.work / "label-item.png")
        page = f"{site}/p/answer-grade"
        agreement = picture(driver, f"{page}/agreement/", "", run.work / "label-agreement.png")
        adjudicate = picture(driver, f"{page}/adjudicate/", "4", run.work / "label-adjudicate.png")
    alt = "A passage with a highlighted sentence, the choices beside it, and the instructions"
    yield "item", Picture(alt, "images/label-item.png", item)
    yield "agreement", Picture("The page with agreement and base rates", "images/label-agreement.png", agreement)
    alt = "Three anonymous answers beside the item, and the form for the decision"
    yield "adjudicate", Picture(alt, "images/label-adjudicate.png", adjudicate)
