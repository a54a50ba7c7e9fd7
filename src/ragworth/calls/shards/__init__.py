"""Calls in shards: planned in one place, run anywhere, merged into a store.

A plan is a folder with ``plan.json`` and one Parquet file of requests for each shard, sorted by key and named after its
content. Whoever runs a shard adds files of answers to the folder ``answers``. Merging checks these and writes a segment
of the store for each shard. Keys decide the shard of a request, so a shard is a range of keys.
"""
