"""A collection and a reader whose behaviour is known: what a study should find is planted in it.

Every passage says what it is: ``q007 gold sure=0.90 says right7`` helps, ``q007 near sure=0.60 says wrong7`` misleads
with the strength it says, ``about nothing sure=0.05`` does neither. The reader declines on a passage alone with
probability 1 − sure. From several passages it takes the strongest voice, weighed by position, and abstains below a
threshold; its noise is drawn from the prompt, so that runs repeat.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragworth.llm.contract import Choose, Generate, Request, Score, Trace
from ragworth.llm.scripted import Scripted, ScriptedReply

VOICE = re.compile(r"sure=([\d.]+) says (\w+)")


@dataclass
class Reader:
    """How the simulated model reads.

    ``weights`` of positions (the last one counts for all further ones); ``threshold`` below which it abstains;
    ``noise`` added to each voice. With ``gamma``, it does not take the strongest voice but the sum of the right ones
    less gamma times the sum of the wrong ones: right above the threshold, wrong below minus the threshold.
    """

    weights: Sequence[float] = (1.0,)
    threshold: float = 0.3
    noise: float = 0.1
    gamma: float | None = None
    name: str = "simulated"

    def weight(self, place: int) -> float:
        return self.weights[min(place, len(self.weights) - 1)]

    def summed(self, prompt: str, draw: random.Random) -> tuple[str, float]:
        """What all voices together say, and how loudly."""
        assert self.gamma is not None
        total, said = draw.gauss(0, self.noise), {"right": "", "wrong": ""}
        for place, voice in enumerate(VOICE.finditer(prompt)):
            if (kind := voice[2][:5]) in said:
                said[kind] = voice[2]
                total += self.weight(place) * float(voice[1]) * (1.0 if kind == "right" else -self.gamma)
        return said["right" if total > 0 else "wrong"], abs(total)

    def strongest(self, prompt: str, draw: random.Random) -> tuple[str, float]:
        """What the loudest voice says, and how loudly."""
        found = self.voices(prompt, draw)
        best = max(found, key=lambda said: found[said], default="")
        return best, found.get(best, 0.0)

    def voices(self, prompt: str, draw: random.Random) -> dict[str, float]:
        found: dict[str, float] = {}
        for place, voice in enumerate(VOICE.finditer(prompt)):
            strength = self.weight(place) * float(voice[1]) + draw.gauss(0, self.noise)
            found[voice[2]] = max(found.get(voice[2], 0.0), strength)
        return found

    def __call__(self, request: Request) -> ScriptedReply:
        last = request.prompt.messages[-1].content
        draw = random.Random(f"{self.name} {last}")
        if isinstance(request, Choose):
            if len(request.labels) == 2:  # relevant or not: the passage says it
                first = 0.95 if " gold " in last else 0.05
                return dict(zip(request.labels, (first, 1 - first), strict=True))
            voice = VOICE.search(last)
            sure = float(voice[1]) if voice else 0.02
            return {request.labels[0]: min(0.99, max(0.01, 1 - sure))}
        best, strength = self.summed(last, draw) if self.gamma is not None else self.strongest(last, draw)
        entropy = max(0.01, 1.5 - strength)
        if isinstance(request, Score):
            words = tuple(request.continuation.split(" "))
            return Trace(words, (-1.5,) * len(words), (1.5,) * len(words))
        assert isinstance(request, Generate)
        text = best if best and strength >= self.threshold else "NO-RESPONSE"
        if request.detail == "text":
            return text
        return Trace((text,), (-entropy,), (entropy,))


def model(reader: Reader) -> Callable[..., Scripted]:
    """What stands in for ``ragworth.llm`` (patch ``ragworth.evaluation.model_pool.llm`` with it)."""

    def opened(spec: str = "", **options: Any) -> Scripted:
        mine = reader if spec in ("", "embedded", reader.name) else Reader(name=spec, noise=0.4)
        return Scripted(mine, name=mine.name, batch=64)

    return opened


def collection(
    folder: Path,
    *,
    queries: int = 40,
    relevant: int = 3,
    near: int = 12,
    far: int = 5,
    seed: int = 0,
    toml: str = "",
) -> Path:
    """A workspace: for each query a run of relevant, misleading and empty passages, labels, and an accepted answer."""
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    texts: list[dict[str, str]] = []
    run, labels, asked = [], [], []
    for number in range(queries):
        query = f"q{number:03d}"
        asked.append({"id": query, "text": f"what is the word of {query}", "answers": [f"right{number}"]})
        mine = []
        for kind, count in (("gold", relevant), ("near", near), ("far", far)):
            for at in range(count):
                name = f"{query}-{kind}{at}"
                low, high = {"gold": (0.35, 0.98), "near": (0.05, 0.9), "far": (0.0, 0.05)}[kind]
                sure = draw.uniform(low, high)
                said = f"right{number}" if kind == "gold" else f"wrong{number}x{at}" if kind == "near" else "nothing"
                texts.append({"id": name, "text": f"{query} {kind} sure={sure:.3f} says {said}"})
                mine.append(name)
                if kind != "far":
                    labels.append(f"{query} 0 {name} {int(kind == 'gold')}")
        draw.shuffle(mine)
        run += [f"{query} Q0 {name} {rank} {1 / rank:.6f} first" for rank, name in enumerate(mine, 1)]
    for name, rows in (("queries.jsonl", asked), ("passages.jsonl", texts)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "run.txt").write_text("\n".join(run) + "\n", encoding="utf-8")
    (folder / "qrels.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
    (folder / "ragworth.toml").write_text(
        f'title = "{folder.name}"\nk = 5\n[collection]\nqueries = "queries.jsonl"\npassages = "passages.jsonl"\n'
        'answers = "queries.jsonl"\nqrels = "qrels.txt"\n[systems]\nfirst = { run = "run.txt" }\n'
        "[judgments]\nabstention = true\n[answers]\nlength = 16\n[grades]\ndeterministic = true\n" + toml,
        encoding="utf-8",
    )
    return folder
