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

from ragworth.core.errors import MissingExtraError, ModelError, format_list
from ragworth.llm.fingerprint import fingerprint
from ragworth.llm.hub import find_snapshot, first_line, local_folder
from ragworth.llm.local.batches import BatchBudget

Floats = npt.NDArray[np.float32]

BEST_LAYERS = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "bert-base-multilingual-cased": 9,
    "roberta-base": 10,
    "roberta-large": 17,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
    "distilbert-base-uncased": 5,
    "deberta-xlarge-mnli": 40,
}
"""The layer of an encoder whose BERTScore agrees best with people, as its authors found on WMT16."""

HUB_OWNERS = {"bert": "google-bert", "distilbert": "distilbert", "roberta": "FacebookAI", "xlm": "FacebookAI"}
"""Hub owners of models whose names used to have none, by prefix of the name."""

SPACE_PREFIXED_TOKENIZERS = ("RobertaTokenizer", "GPT2Tokenizer")
"""Tokenizers that encode the first word of a text differently unless a blank precedes it."""

NO_LIMIT = 1 << 24
"""A tokenizer without a limit reports a larger one than this."""


class EncodedText(NamedTuple):
    """A text as token ids, including special ones.

    Attributes
    ----------
    empty: there are only special tokens.
    cut: number of tokens beyond the encoder's limit.
    """

    ids: tuple[int, ...]
    empty: bool
    cut: int


class TokenVectors(Protocol):
    """What BERTScore needs of an encoder. Equal ``name``, ``revision`` and ``layer`` mean equal vectors."""

    name: str
    revision: str
    layer: int

    @property
    def width(self) -> int:
        """Length of a vector."""
        ...

    @property
    def special(self) -> frozenset[int]:
        """The tokens that begin and end a text."""
        ...

    def tokens(self, texts: Sequence[str]) -> list[EncodedText]:
        """Encode stripped texts as token ids, truncated at the limit."""
        ...

    def vectors(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """A matrix for each row of token ids: one vector per token, of length 1."""
        ...


class TokenEncoder:
    """A layer of an encoder, by its name in the local cache, or by its folder.

    Weights are loaded on first use. Vectors have length 1 and are float32.

    Parameters
    ----------
    layer: the layer to use, counted from 1; 0 is the embeddings. None uses the one known to be best, for encoders in
        :data:`BEST_LAYERS`.
    device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; None or ``auto`` uses a GPU if there is one.
    batch: texts read at a time.
    """

    def __init__(
        self,
        name: str,
        *,
        layer: int | None = None,
        device: str | None = None,
        batch: int = 64,
        revision: str = "main",
        download: bool = False,
    ) -> None:
        _require_packages()
        from ragworth.llm.local.torch_device import resolve_device

        if batch < 1:
            raise ModelError(f"batch is {batch}", expected="1 or more")
        self.folder = _folder(name, revision, download)
        self.name = Path(name).expanduser().resolve().name if Path(name).expanduser().exists() else name
        self.layer = _layer(layer, self.name, self._config)
        self.device = resolve_device(device or "auto")
        self.revision = fingerprint(self.folder)
        self._budget = BatchBudget(128 * batch, batch)

    @cached_property
    def _config(self) -> Any:
        from transformers import AutoConfig

        try:
            return AutoConfig.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise ModelError(f"it cannot be read: {first_line(error)}", file=str(self.folder)) from error

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        from ragworth.llm.local.torch_device import silence_libraries

        silence_libraries()
        try:
            return AutoTokenizer.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise ModelError(f"its tokenizer cannot be read: {first_line(error)}", file=str(self.folder)) from error

    @cached_property
    def _model(self) -> Any:
        import torch
        from transformers import AutoModel

        from ragworth.llm.local.torch_device import silence_libraries

        silence_libraries()
        try:
            model = AutoModel.from_pretrained(
                self.folder,
                dtype=torch.float32,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
            )
        except (OSError, ValueError) as error:
            raise ModelError(
                f"its weights cannot be read: {first_line(error)}",
                file=str(self.folder),
                expected="safetensors files of a model of the transformers library",
            ) from error
        return (model.get_encoder() if self._config.is_encoder_decoder else model).eval()

    @cached_property
    def _cut_model(self) -> tuple[Any, bool]:
        """The model on its device, without the layers above ours, and whether they could be left out."""
        import torch

        stacks = [
            module
            for name, module in self._model.named_modules()
            if isinstance(module, torch.nn.ModuleList)
            and len(module) == self._config.num_hidden_layers
            and not any(part.isdigit() for part in name.split("."))
        ]
        if len(stacks) == 1:
            del stacks[0][self.layer :]
        return self._model.to(self.device), len(stacks) == 1

    @property
    def width(self) -> int:
        """Length of a vector."""
        return int(self._config.hidden_size)

    @cached_property
    def limit(self) -> int | None:
        """Maximum tokens of a text, including special ones; None without a limit."""
        import torch

        limits = [self._tokenizer.model_max_length]
        for name, module in self._model.named_modules():
            if name.rpartition(".")[2] in ("position_embeddings", "wpe") and isinstance(module, torch.nn.Embedding):
                # RoBERTa and its relatives count positions from the one after padding's.
                limits.append(module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1))
        known = [int(limit) for limit in limits if 0 < limit < NO_LIMIT]
        return min(known) if known else None

    @cached_property
    def special(self) -> frozenset[int]:
        """The tokens that begin and end a text (CLS and SEP, whatever the encoder calls them)."""
        found = (self._tokenizer.cls_token_id, self._tokenizer.sep_token_id)
        return frozenset(token for token in found if token is not None)

    def tokens(self, texts: Sequence[str]) -> list[EncodedText]:
        """Encode stripped texts as token ids, truncated at the limit."""
        if not texts:
            return []
        kinds = {kind.__name__ for kind in type(self._tokenizer).__mro__}
        blank = " " if kinds & set(SPACE_PREFIXED_TOKENIZERS) else ""
        stripped = [text.strip() for text in texts]
        read = [blank + text if text else "" for text in stripped]
        whole = self._tokenizer(read, return_special_tokens_mask=True, return_attention_mask=False, verbose=False)
        encoded = [
            EncodedText(tuple(ids), all(mask), 0)
            for ids, mask in zip(whole["input_ids"], whole["special_tokens_mask"], strict=True)
        ]
        long = [i for i, tokens in enumerate(encoded) if self.limit is not None and len(tokens.ids) > self.limit]
        if long:
            again = self._tokenizer([read[i] for i in long], truncation=True, max_length=self.limit)["input_ids"]
            for i, ids in zip(long, again, strict=True):
                encoded[i] = EncodedText(tuple(ids), encoded[i].empty, len(encoded[i].ids) - len(ids))
        return encoded

    def vectors(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """A matrix for each row of token ids: one vector per token, of length 1."""
        import torch

        order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
        found: dict[int, Floats] = {}
        model, was_cut = self._cut_model
        pad = self._tokenizer.pad_token_id or 0

        def read(start: int, end: int) -> None:
            some = order[start:end]
            width = len(rows[some[0]])
            ids = torch.tensor([[*rows[i], *[pad] * (width - len(rows[i]))] for i in some], device=self.device)
            mask = torch.tensor([[1] * len(rows[i]) + [0] * (width - len(rows[i])) for i in some], device=self.device)
            try:
                out = model(input_ids=ids, attention_mask=mask, output_hidden_states=not was_cut)
                states = out.last_hidden_state if was_cut else out.hidden_states[self.layer]
                states = torch.nn.functional.normalize(states, dim=-1).cpu().numpy()
            except torch.OutOfMemoryError as error:
                torch.cuda.empty_cache()
                raise MemoryError(str(error)) from error
            for i, state in zip(some, states, strict=True):
                found[i] = state[: len(rows[i])].copy()

        with torch.inference_mode():
            self._budget.batches([len(rows[i]) for i in order], read)
        return [found[i] for i in range(len(rows))]


def _require_packages() -> None:
    from importlib.util import find_spec

    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "hf", "BERTScore")


def _layer(layer: int | None, name: str, config: Any) -> int:
    """The layer requested, or the best known; an error if the encoder has no such layer."""
    total = int(config.num_hidden_layers)
    known = BEST_LAYERS.get(name.rpartition("/")[2].lower())
    if layer is None and known is None:
        raise ModelError(
            f"the best layer of {name!r} is unknown",
            expected=f"layer=0 to {total}; known are {format_list([f'{n} ({x})' for n, x in BEST_LAYERS.items()], 4)}",
            remedy="set layer=…; about two thirds of the way up is usual",
        )
    chosen = layer if layer is not None else known
    if isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen <= total:
        raise ModelError(f"layer is {chosen}", expected=f"0 to {total}, the layers of {name!r}")
    return chosen


def _folder(name: str, revision: str, download: bool) -> Path:
    """Find the encoder's folder."""
    path = Path(name).expanduser()
    if own := local_folder(path):
        return own
    if path.exists() or path.is_absolute() or name.startswith((".", "~")):
        raise ModelError("no such folder", file=name, expected="a folder, or a name of the hub")
    owner = HUB_OWNERS.get(name.partition("-")[0]) if "/" not in name else None
    for known_as in [f"{owner}/{name}", name] if owner else [name]:
        if found := find_snapshot("encoder", known_as, revision, download):
            return found
    full = f"{owner}/{name}" if owner else name
    raise ModelError(
        f"the encoder {name!r} is not in the local cache",
        remedy=f"hf download {full}, or download=True to get it from the Hugging Face hub, or a folder's path; "
        "the embedded encoder (encoder=embedded) works offline",
    )
