#!/bin/sh
# Score and compare the example's three runs: what `make demo` does.
set -eu
cd "$(dirname "$0")"

echo "== ragworth score: what relevance sees, what the model sees, what a long answer gets"
ragworth score runs/bm25.run runs/dense.run runs/rerank.run \
    --qrels qrels.txt --judgments abstention.csv --ratings ratings.txt --passages passages.csv \
    -m nDCG@5 -m R@5 -m UDCG@5 -m Distraction@5 -m Cov@5 -m Den@5

echo
echo "== ragworth compare: is the difference real?"
ragworth compare runs/bm25.run runs/dense.run runs/rerank.run \
    --qrels qrels.txt --judgments abstention.csv -m nDCG@5 -m UDCG@5

echo
echo "Next: your own files. See README.md, or: ragworth score --help"
