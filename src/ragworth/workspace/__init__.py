"""The door: what is evaluated, out of a ``ragworth.toml``, files, folders, data frames or lists of dicts.

The command line and Python share this package. ``read.py`` turns what the user names into a workspace, ``files.py``
reads files and remembers them, ``plan.py`` decides what a set of files is evaluated as, ``config.py`` and ``toml.py``
declare and check a ``ragworth.toml``, ``init.py`` writes one, and ``problems.py`` collects everything that is wrong so
that one error reports it all.
"""
