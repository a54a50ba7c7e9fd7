"""Read untrusted Parquet files.

Polars trusts the sizes in a Parquet file. One wrong byte can make it allocate 2⁶¹ bytes, which ends the process, or
panic, which prints Rust's panic text. So a file is checked first: the footer and all page headers (`layout.py`, using
`thrift.py`). Files with encodings whose decoders trust sizes inside the data are first read in a separate process
(`trial.py`). `reading.py` combines these steps.
"""

from ragworth.parquet.reading import read_parquet

__all__ = ["read_parquet"]
