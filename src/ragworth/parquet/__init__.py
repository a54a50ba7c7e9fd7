"""Reading Parquet files that somebody else wrote.

Polars trusts the sizes in a Parquet file. One wrong byte can make it allocate 2⁶¹ bytes, which ends the process, or
panic, which prints Rust's panic text. So a file is checked first: the footer and all page headers (`layout.py`, over
`thrift.py`). Files with encodings whose decoders trust sizes inside the data are read once in a process of their own
(`trial.py`). `reading.py` puts this together.
"""

from ragworth.parquet.reading import read_parquet

__all__ = ["read_parquet"]
