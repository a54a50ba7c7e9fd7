"""Build byte-level BPE tokenizers from the pieces in GGUF files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from ragworth.core.errors import ModelError

CONTROL, ADDED = 3, 4
"""Token types in GGUF files: control tokens, and those matched before any splitting."""

_SPLIT_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class Vocabulary(NamedTuple):
    """Tokens and how texts are split into them. ``bos``: the id prepended to every text, if any."""

    tokens: Sequence[str]
    types: Sequence[int]
    merges: Sequence[str]
    splitting: str
    bos: int | None


class BpeTokenizer:
    """A tokenizer of the tokenizers library as `prompt_encoding.Tokenizer`."""

    def __init__(self, inner: Tokenizer) -> None:
        self.inner = inner

    def encode(self, texts: Sequence[str], *, whole: bool) -> list[list[int]]:
        found = self.inner.encode_batch_fast(list(texts), add_special_tokens=whole)
        return [encoding.ids for encoding in found]

    def decode(self, ids: list[int]) -> str:
        return str(self.inner.decode(ids, skip_special_tokens=True))


def build_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """Build the tokenizer that a vocabulary describes."""
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    # Llama 3's tokenizer applies no merges if the whole word is a token.
    whole = vocabulary.splitting == "llama-bpe"
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in vocabulary.merges)]
    try:
        tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges, ignore_merges=whole))
    except Exception as error:  # the library raises nothing more specific
        raise ModelError(f"the model's vocabulary cannot be used: {error}") from error
    tokenizer.pre_tokenizer = _pre_tokenizer(vocabulary.splitting)
    tokenizer.decoder = decoders.ByteLevel()
    for kind, special in ((CONTROL, True), (ADDED, False)):
        texts = [token for token, found in zip(vocabulary.tokens, vocabulary.types, strict=True) if found == kind]
        added = [AddedToken(text, normalized=False, special=special) for text in texts]
        tokenizer.add_special_tokens(added) if special else tokenizer.add_tokens(added)
    if vocabulary.bos is not None:
        bos = vocabulary.tokens[vocabulary.bos]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, vocabulary.bos)]
        )
    return tokenizer


def _pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    """How a text is split before merging, by the name in GGUF files."""
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name in ("gpt-2", "default"):
        return plain
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), plain])
    digits = {"llama-bpe": r"\p{N}{1,3}", "qwen2": r"\p{N}"}
    if name not in digits:
        raise ModelError(
            f"the model uses the unknown pre-tokenizer {name!r}",
            expected=", ".join(["gpt-2", "smollm", *digits]),
            remedy="reader=llama.cpp may support it",
        )
    words = pre_tokenizers.Split(Regex(_SPLIT_PATTERN.format(digits=digits[name])), behavior="isolated")
    return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
