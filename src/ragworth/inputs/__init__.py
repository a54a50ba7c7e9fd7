"""Input of every kind: files, folders, data frames and lists of dicts → texts, contexts, answers and labels.

The command line, ``ragworth.toml`` and Python share this package. ``recognition.py`` says what a file is,
``workspace_plan.py`` what a set of files is evaluated as, ``runs.py`` reads what systems showed and answered, and
``problems.py`` collects everything that is wrong so that one error reports it all.
"""
