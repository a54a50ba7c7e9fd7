"""Encode texts as one vector per token, from a layer of a transformers encoder (extra ``hf``).

Only safetensors files are read, code that comes with a model is never run, and nothing is downloaded without
``download=True``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ragworth.core.errors import ModelError, format_list
from ragworth.llm.local.runtime import BatchBudget
from ragworth.llm.model_files import find_snapshot, fingerprint, first_line, local_folder

Floats = npt.NDArray[np.float32]

BEST_LAYERS = {"bert-base-uncased": 9, "bert-large-uncased": 18, "bert-base-multilingual-cased": 9}
BEST_LAYERS |= {"roberta-base": 10, "roberta-large": 17, "xlm-roberta-base": 9, "xlm-roberta-large": 17}
BEST_LAYERS |= {"distilbert-base-uncased": 5, "deberta-xlarge-mnli": 40}
"""The layer of an encoder whose BERTScore agrees best with people, as its authors found on WMT16."""

HUB_OWNERS = {"bert": "google-bert", "distilbert": "distilbert", "roberta": "FacebookAI", "xlm": "FacebookAI"}
"""Hub owners of models whose names used to have none, by prefix of the name."""

SPACE_PREFIXED_TOKENIZERS = ("RobertaTokenizer", "GPT2Tokenizer")
"""Tokenizers that encode the first word of a text differently unless a blank precedes it."""

NO_LIMIT = 1 << 24
"""A tokenizer without a limit reports a larger one than this."""

BATCH = 64
"""Texts read at a time, of up to 128 tokens."""


class EncodedText(NamedTuple):
    """A text as token ids, including special ones."""

    ids: tuple[int, ...]
    empty: bool
    """There are only special tokens."""
    cut: int
    """Number of tokens beyond the encoder's limit."""


class TokenVectors(Protocol):
    """What BERTScore needs of an encoder. Equal ``name``, ``revision`` and ``layer`` mean equal vectors.

    ``special`` are the tokens that begin and end a text. `tokens` encodes texts, truncated at the limit; `vectors`
    gives a matrix for each row of token ids, with one vector of length 1 per token.
    """

    name: str
    revision: str
    layer: int

    @property
    def special(self) -> frozenset[int]: ...

    def tokens(self, texts: Sequence[str]) -> list[EncodedText]: ...

    def vectors(self, rows: Sequence[Sequence[int]]) -> list[Floats]: ...


class TokenEncoder:
    """A layer of an encoder, by its name in the local cache, or by its folder.

    Weights are loaded on first use. Vectors have length 1 and are float32.

    Parameters
    ----------
    layer: the layer to use, counted from 1; 0 is the embeddings. None uses the one known to be best, for encoders in
        :data:`BEST_LAYERS`.
    device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; None or ``auto`` uses a GPU if there is one.
    """

    def __init__(
        self, name: str, *, layer: int | None = None, device: str | None = None, download: bool = False
    ) -> None:
        from ragworth.llm.hf import require_transformers, resolve_device, silence_libraries

        require_transformers()
        silence_libraries()
        self.folder = _folder(name, download)
        self.name = Path(name).expanduser().resolve().name if Path(name).expanduser().exists() else name
        self.layer = _layer(layer, self.name, self._config)
        self.device = resolve_device(device or "auto")
        self.revision = fingerprint(self.folder)
        self._budget = BatchBudget(128 * BATCH, BATCH)

    @cached_property
    def _config(self) -> Any:
        return self._load("AutoConfig", "it cannot be read")

    @cached_property
    def _tokenizer(self) -> Any:
        return self._load("AutoTokenizer", "its tokenizer cannot be read")

    @cached_property
    def _model(self) -> Any:
        """The encoder on its device, without the layers above ours where they are in the usual place."""
        import torch

        model = self._load("AutoModel", "its weights cannot be read", dtype=torch.float32, use_safetensors=True)
        model = model.get_encoder() if self._config.is_encoder_decoder else model
        layers = getattr(getattr(model, "encoder", None), "layer", None)
        if isinstance(layers, torch.nn.ModuleList):
            del layers[self.layer :]
        return model.to(self.device).eval()

    def _load(self, kind: str, failure: str, **options: Any) -> Any:
        """Open a part of the model by a class of transformers, from its files alone."""
        import transformers

        opened = getattr(transformers, kind).from_pretrained
        try:
            return opened(self.folder, local_files_only=True, trust_remote_code=False, **options)
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{failure}: {first_line(error)}",
                file=str(self.folder),
                expected="a model of the transformers library with safetensors files",
            ) from error

    @cached_property
    def limit(self) -> int | None:
        """Maximum tokens of a text, including special ones; None without a limit."""
        import torch

        limits = [self._tokenizer.model_max_length]
        for name, module in self._model.named_modules():
            if name.rpartition(".")[2] == "position_embeddings" and isinstance(module, torch.nn.Embedding):
                # RoBERTa and its relatives count positions from the one after padding's.
                limits.append(module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1))
        return min((int(limit) for limit in limits if 0 < limit < NO_LIMIT), default=None)

    @cached_property
    def special(self) -> frozenset[int]:
        """The tokens that begin and end a text (CLS and SEP, whatever the encoder calls them)."""
        ends = (self._tokenizer.cls_token_id, self._tokenizer.sep_token_id)
        return frozenset(token for token in ends if token is not None)

    def tokens(self, texts: Sequence[str]) -> list[EncodedText]:
        """Encode stripped texts as token ids, truncated at the limit."""
        if not texts:
            return []
        kinds = {kind.__name__ for kind in type(self._tokenizer).__mro__}
        blank = " " if kinds & set(SPACE_PREFIXED_TOKENIZERS) else ""
        read = [blank + text.strip() if text.strip() else "" for text in texts]
        whole = self._tokenizer(read, return_special_tokens_mask=True, return_attention_mask=False, verbose=False)
        encoded = [
            EncodedText(tuple(ids), all(mask), 0)
            for ids, mask in zip(whole["input_ids"], whole["special_tokens_mask"], strict=True)
        ]
        long = [i for i, text in enumerate(encoded) if self.limit is not None and len(text.ids) > self.limit]
        if long:
            truncated = self._tokenizer([read[i] for i in long], truncation=True, max_length=self.limit)["input_ids"]
            for i, ids in zip(long, truncated, strict=True):
                encoded[i] = EncodedText(tuple(ids), encoded[i].empty, len(encoded[i].ids) - len(ids))
        return encoded

    def vectors(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """A matrix for each row of token ids: one vector per token, of length 1."""
        import torch

        order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
        vectors: dict[int, Floats] = {}
        pad = self._tokenizer.pad_token_id or 0

        def read(start: int, end: int) -> None:
            some = order[start:end]
            width = len(rows[some[0]])
            ids = torch.tensor([[*rows[i], *[pad] * (width - len(rows[i]))] for i in some], device=self.device)
            mask = torch.tensor([[1] * len(rows[i]) + [0] * (width - len(rows[i])) for i in some], device=self.device)
            try:
                states = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
                layer = torch.nn.functional.normalize(states[self.layer], dim=-1).cpu().numpy()
            except torch.OutOfMemoryError as error:
                torch.cuda.empty_cache()
                raise MemoryError(str(error)) from error
            vectors.update((i, state[: len(rows[i])].copy()) for i, state in zip(some, layer, strict=True))

        with torch.inference_mode():
            self._budget.batches([len(rows[i]) for i in order], read)
        return [vectors[i] for i in range(len(rows))]


def _layer(layer: int | None, name: str, config: Any) -> int:
    """The layer requested, or the best known; an error if the encoder has no such layer."""
    total = int(config.num_hidden_layers)
    chosen = layer if layer is not None else BEST_LAYERS.get(name.rpartition("/")[2].lower())
    if chosen is None:
        raise ModelError(
            f"the best layer of {name!r} is unknown",
            expected=f"layer=0 to {total}; known are {format_list([f'{n} ({x})' for n, x in BEST_LAYERS.items()], 4)}",
            remedy="set layer=…; about two thirds of the way up is usual",
        )
    if not 0 <= chosen <= total:
        raise ModelError(f"layer is {chosen}", expected=f"0 to {total}, the layers of {name!r}")
    return chosen


def _folder(name: str, download: bool) -> Path:
    """Find the encoder's folder."""
    path = Path(name).expanduser()
    if own := local_folder(path):
        return own
    if path.exists() or path.is_absolute() or name.startswith((".", "~")):
        raise ModelError("no such folder", file=name, expected="a folder, or a name of the hub")
    owner = HUB_OWNERS.get(name.partition("-")[0]) if "/" not in name else None
    full = f"{owner}/{name}" if owner else name
    for known_as in dict.fromkeys((full, name)):
        if folder := find_snapshot("encoder", known_as, "main", download):
            return folder
    raise ModelError(
        f"the encoder {name!r} is not in the local cache",
        remedy=f"hf download {full}, or download=True to get it from the Hugging Face hub, or a folder's path; "
        "the embedded encoder (encoder=embedded) works offline",
    )
