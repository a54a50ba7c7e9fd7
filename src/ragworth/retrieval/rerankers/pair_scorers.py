"""Models that score a pair of a query and a passage: cross-encoders, and sequence-to-sequence models such as monoT5.

Both are folders of the transformers library, or in the local cache of the Hugging Face hub. The first pair loads the
weights, on a GPU if there is one, in single precision. All weights have to be in the folder, because the library would
initialize missing ones randomly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

from ragworth.core.errors import MissingExtraError, ModelError, format_list
from ragworth.llm.contract import Prompt, PromptMessage, Span
from ragworth.llm.model_files import find_snapshot, fingerprint, local_folder
from ragworth.llm.truncation import fit_prompt
from ragworth.retrieval.encoders.model_purpose import ModelPurpose, architectures, check_purpose, model_errors
from ragworth.retrieval.rerankers.score_cache import TextPair

BATCH = 32
"""Pairs read at a time."""

OFFSET_FAMILIES = frozenset(("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet"))
"""Families that number positions from the padding's id, and read two tokens less than they have positions."""


def model_folder(name: str, base: Path | None) -> Path:
    """Find a model's folder: a path relative to the base, or the local cache of the hub."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("transformers", "hf", "re-ranking with a model of the transformers library")
    path = Path(name).expanduser()
    if (own := local_folder((base or Path()) / path)) is not None:
        return own
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1:
        raise ModelError("no such folder", file=name, expected="a folder, or OWNER/NAME of the hub")
    found = find_snapshot("model", name, "main", False)
    if found is None:
        raise ModelError(f"the model {name!r} is not in the local cache", remedy=f"hf download {name}")
    return found


@dataclass
class PairScorer:
    """A model in a folder. ``length``: maximum tokens of a pair; 0 for the model's maximum."""

    folder: Path
    length: int = 0
    cut: int = field(default=0, init=False)
    """Number of truncated pairs."""

    auto: ClassVar[str]
    """The class of the transformers library that loads it."""
    purpose: ClassVar[ModelPurpose]
    """What it must have been made for."""

    @cached_property
    def revision(self) -> str:
        """A hash of its files when it was opened."""
        return fingerprint(self.folder)

    def check(self) -> None:
        """Reject a model made for something else, without loading it."""
        check_purpose(self.folder, self.purpose)

    def score(self, pairs: Sequence[TextPair]) -> list[float]:
        """Score each pair, the higher the better."""
        import torch

        found: list[float] = []
        remedy = f"use one of the {self.purpose.plural} that was saved together with its tokenizer"
        with torch.inference_mode(), model_errors("the model cannot score pairs", self.folder, remedy):
            for start in range(0, len(pairs), BATCH):
                found += self.score_batch(pairs[start : start + BATCH])
        if not all(map(isfinite, found)):
            raise ModelError(
                "the model's scores are not finite numbers",
                file=str(self.folder),
                remedy="use another file of the model: its weights are damaged",
            )
        return found

    def score_batch(self, pairs: Sequence[TextPair]) -> list[float]:
        raise NotImplementedError

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)

    @cached_property
    def model(self) -> Any:
        import torch
        import transformers

        from ragworth.llm.hf import resolve_device, silence_libraries

        silence_libraries()
        self.check()
        options = {"local_files_only": True, "trust_remote_code": False}
        remedy = f"use one of the {self.purpose.plural} that is complete, with safetensors weights"
        with model_errors("the transformers library cannot load it", self.folder, remedy):
            self.check_config(transformers.AutoConfig.from_pretrained(self.folder, **options))
            model, about = getattr(transformers, self.auto).from_pretrained(
                self.folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True, **options
            )
        if lacking := sorted(about["missing_keys"]):
            raise ModelError(
                f"its weights lack {format_list(lacking, 3)}, which would be random numbers",
                file=str(self.folder),
                expected=f"one of the {self.purpose.plural}, complete",
                remedy=f"use another model; {ModelPurpose.VECTORS.home(self.folder)}",
            )
        return model.to(resolve_device("auto")).eval()

    def check_config(self, config: Any) -> None:
        """Reject a model that isn't a scorer of this kind."""

    @cached_property
    def reads(self) -> int:
        """Maximum tokens of a pair."""
        config = self.model.config
        places = getattr(config, "max_position_embeddings", 0) or 1 << 20
        places -= 2 if config.model_type in OFFSET_FAMILIES else 0
        most = int(min(places, self.tokenizer.model_max_length))
        if self.length > most:
            raise ModelError(f"length is {self.length}", expected=f"at most {most}, which the model reads")
        return self.length or most


class CrossEncoder(PairScorer):
    """A sequence classifier that reads query and passage together: its one logit, or the second of two minus the first.

    Pairs that are too long lose tokens of the longer text first, as in sentence-transformers.
    """

    auto = "AutoModelForSequenceClassification"
    purpose = ModelPurpose.CLASSIFYING

    def check_config(self, config: Any) -> None:
        if config.num_labels not in (1, 2):
            raise ModelError(
                f"the model has {config.num_labels} labels",
                file=str(self.folder),
                expected="one, or two: not relevant, relevant",
            )

    def score_batch(self, pairs: Sequence[TextPair]) -> list[float]:
        texts = [list(part) for part in zip(*pairs, strict=True)]
        whole = self.tokenizer(*texts, verbose=False)["input_ids"]
        self.cut += sum(len(ids) > self.reads for ids in whole)
        given = self.tokenizer(*texts, padding=True, truncation=True, max_length=self.reads, return_tensors="pt")
        logits = self.model(**given.to(self.model.device)).logits.double()
        values = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return [float(each) for each in values]


@dataclass
class MonoT5(PairScorer):
    """A sequence-to-sequence model that says ``true`` or ``false``: the log-probability of the first of the two.

    Paper: Nogueira et al., Document Ranking with a Pretrained Sequence-to-Sequence Model. A pair that is too long loses
    the end of its passage, never the words around it.
    """

    length: int = 512

    auto = "AutoModelForSeq2SeqLM"
    purpose = ModelPurpose.WRITING

    def check_config(self, config: Any) -> None:
        if getattr(config, "decoder_start_token_id", None) is None:
            raise ModelError("the model's configuration has no decoder start token", file=str(self.folder))

    @cached_property
    def labels(self) -> list[int]:
        """Tokens of ``true`` and ``false``."""
        found = [self.tokenizer(word, add_special_tokens=False)["input_ids"] for word in ("true", "false")]
        if any(len(ids) != 1 or ids == [self.tokenizer.unk_token_id] for ids in found):
            raise ModelError(
                "'true' and 'false' are not single tokens of the model",
                file=str(self.folder),
                expected="a model that was trained to say true or false, such as monoT5",
            )
        return [ids[0] for ids in found]

    def score_batch(self, pairs: Sequence[TextPair]) -> list[float]:
        import torch

        texts = [self.format_input(pair) for pair in pairs]
        given = self.tokenizer(texts, padding=True, return_tensors="pt").to(self.model.device)
        start = torch.full((len(texts), 1), self.model.config.decoder_start_token_id, device=self.model.device)
        kept = {name: given[name] for name in ("input_ids", "attention_mask")}
        logits = self.model(**kept, decoder_input_ids=start).logits[:, 0, self.labels].double()
        return [float(each) for each in torch.log_softmax(logits, dim=1)[:, 0]]

    def format_input(self, pair: TextPair) -> str:
        """The model's input for a pair."""
        before = f"Query: {pair.query} Document: "
        text = f"{before}{pair.passage} Relevant:"
        span = Span(0, len(before), len(before) + len(pair.passage))
        fitted = fit_prompt(Prompt((PromptMessage("text", text),), (span,)), self.reads, self._count)
        if fitted is None:
            raise ModelError(f"the query alone is longer than the {self.reads} tokens that the model reads")
        self.cut += bool(fitted[1])
        return fitted[0].messages[0].content

    def _count(self, prompt: Prompt) -> int:
        return len(self.tokenizer(prompt.messages[0].content, verbose=False)["input_ids"])


def open_scorer(folder: Path, length: int = 0) -> PairScorer:
    """The scorer for a model in a folder, by the architecture in its config.json."""
    if any(name.endswith(ModelPurpose.WRITING.ends) for name in architectures(folder)):
        return MonoT5(folder, length or MonoT5.length)
    return CrossEncoder(folder, length)
