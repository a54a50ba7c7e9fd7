"""Write the generated pages of this folder."""

from pathlib import Path

from ragworth.cli import main
from ragworth.report.reference_pages import all_pages

here = Path(__file__).parent
for path, text in all_pages(main).items():
    (here / path).parent.mkdir(exist_ok=True)
    (here / path).write_text(text, encoding="utf-8")
