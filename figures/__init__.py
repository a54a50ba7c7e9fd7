"""The numbers, tables and pictures of the documentation, computed and written into the pages.

A page marks what is computed. A block has two lines around it, a number in a sentence two comments:

    <!-- figure: coverage.means -->

    | values | n = 30 |
    …

    <!-- end figure -->

    The interval covers <!--=coverage.least-->91.9<!--/--> % at least.

The script of ``docs/statistics.md`` is ``figures/pages/docs/statistics.py``. It has one function for each command that
makes figures; the first part of a region's name is the function, the rest is what the function yields:

    @figure("python benchmarks/coverage.py shares", seconds=2)
    def coverage(run: Run) -> Shown:
        table = run.table("python benchmarks/coverage.py shares")
        yield "means", str(table)
        yield "least", min(table.column("least"))

``make figures`` runs everything this machine can run, ``make figures PAGE=docs/statistics.md`` one page, and
``python -m figures --list`` shows what there is, what it needs and how long it takes.
"""
