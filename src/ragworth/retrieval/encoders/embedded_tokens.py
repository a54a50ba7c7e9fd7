"""The embedded encoder as a token encoder: one vector per token, without network and PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from ragworth.errors import ModelError
from ragworth.retrieval.encoders import encoder_folder, open_encoder
from ragworth.retrieval.encoders.contract import Floats
from ragworth.retrieval.encoders.onnx_encoder import OnnxEncoder
from ragworth.text_match.token_encoder import EncodedText


class EmbeddedTokenEncoder:
    """The last layer of the embedded encoder, the only one that its graph returns."""

    def __init__(self, layer: int | None = None) -> None:
        encoder = open_encoder("embedded")
        assert isinstance(encoder, OnnxEncoder)
        config = encoder.folder / "config.json"
        last = encoder_folder.int_field(encoder_folder.read_json(config, {}), "num_hidden_layers", config, 0)
        if layer not in (None, last):
            raise ModelError(
                f"layer is {layer}",
                expected=f"{last}, the last layer: the embedded encoder returns no other",
                remedy="leave out the layer, or name another encoder",
            )
        self._encoder = encoder
        self.name, self.revision, self.layer = f"embedded:{encoder.name}", encoder.revision, last
        found = (encoder.tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
        self.special = frozenset(token for token in found if token is not None)

    @property
    def width(self) -> int:
        """Length of a vector."""
        return self._encoder.dimension

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
