"""What is evaluated: a ``ragworth.toml``, files, folders, data frames or lists of dicts.

The command line and Python share this package. ``config.py`` reads a ``ragworth.toml``, ``recognition.py`` says what a
file is, ``workspace_plan.py`` what a set of files is evaluated as, ``runs.py`` reads what systems showed and answered,
and ``problems.py`` collects everything that is wrong so that one error reports it all.
"""
