"""docs/metrics: a page for each metric, from its declaration, and their list."""

from figures.declare import Page, Shown, figure
from figures.running import Run


@figure("ragworth metrics", seconds=1, whole="docs/metrics/*.md")
def metrics(run: Run) -> Shown:
    from ragworth.metrics import METRICS
    from ragworth.report.reference_pages import metric_index, metric_page

    yield "docs/metrics/README.md", Page(metric_index())
    for metric in METRICS:
        yield f"docs/metrics/{metric.name}.md", Page(metric_page(metric))
