"""Tell answers to the same question apart: find the column that names the systems, or numbers the repeats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from ragworth.errors import FormatError, Hint, format_list, quote_short
from ragworth.formats.fields import JOIN, SYSTEM_COLUMNS, FieldFinder, plain_name, quote_argument

SETTING_COLUMNS = (
    *("reranker", "embedding", "embedding_model", "embedder", "prompt_version", "prompt_name", "prompt_id", "top_k"),
    *("chunk_size", "strategy", "technique", "rag_type", "mode", "setting", "arm"),
)
"""Names of columns with settings that may tell systems apart."""

REPEATS = "if these are repeats, number them in a column 'repeat'; if each counts by itself, give it an 'id'"

MAX_TRIES = 12
"""Maximum number of mappings that are tried."""

REPEAT_COLUMNS = ("run", "run_id", "trial", "attempt", "iteration", "repetition", "replicate", "seed", "sample")
"""Names of columns that may number the answers of a system to a question."""

PASSAGE_COLUMNS = ("rank", "position", "chunk_id", "chunk_index", "passage_id", "passage_rank", "doc_id", "doc_rank")
"""Names of columns of files with a row for each passage."""


def tells_apart(columns: Iterable[str]) -> bool:
    """Whether a column may be mapped if questions recur."""
    return not {*SYSTEM_COLUMNS, *SETTING_COLUMNS, *REPEAT_COLUMNS}.isdisjoint(map(plain_name, columns))


def system_column(columns: Iterable[str]) -> str | None:
    """The column that may name the systems."""
    return next((column for column in columns if plain_name(column) in SYSTEM_COLUMNS), None)


def mappings_to_try(finder: FieldFinder) -> Iterator[dict[str, str]]:
    """Mappings of the system, the repeat or both to columns that no field has."""
    used = {key for keys in finder.known_keys() for field, key in keys.items() if field in ("question", "answer")}
    fields = {field for keys in finder.known_keys() for field in keys}
    free = [column for column in finder.seen if column not in used]
    naming = [column for column in free if plain_name(column) in (*SYSTEM_COLUMNS, *SETTING_COLUMNS)]
    systems = [] if "system" in fields else [{"system": column} for column in naming]
    numbering = [column for column in free if plain_name(column) in REPEAT_COLUMNS]
    repeats = [] if "repeat" in fields else [{"repeat": column} for column in numbering]
    pairs = [{"system": JOIN.join(pair)} for pair in combinations(naming, 2)] if systems else []
    both = [one | other for one in systems for other in repeats]
    yield from [*systems, *repeats, *both, *pairs][:MAX_TRIES]
    if len(systems) > 2:
        yield {"system": JOIN.join(naming)}


def mapping_note(mapping: Mapping[str, str], systems: Iterable[str]) -> str:
    """What users should know about columns that were mapped because questions recur."""
    few = format_list([quote_short(name, 24) for name in sorted(systems)], 4)
    does = {"system": f"names the systems ({few})", "repeat": "numbers the repeats"}
    told = " and ".join(f"{column!r} {does[field]}" for field, column in mapping.items())
    return f"questions recur, and {told}"


def repeats_error(error: FormatError, finder: FieldFinder) -> FormatError:
    """The error for questions that occur twice, with advice on the column that may tell the rows apart."""
    kinds = {"system": ("names the systems", SYSTEM_COLUMNS), "repeat": ("numbers the repeats", REPEAT_COLUMNS)}
    for field_name, (does, names) in kinds.items():
        column = next((key for key in finder.seen if plain_name(key) in names), None)
        if column is None or field_name in finder.columns:
            continue
        return error.copy(
            remedy=Hint(
                f"if {column!r} {does}: --map {quote_argument(f'{field_name}={column}')}; {REPEATS}",
                f"if {column!r} {does}, write under [columns]: {field_name} = {json.dumps(column)}; {REPEATS}",
                f"if {column!r} {does}: columns={json.dumps({field_name: column})}; {REPEATS}",
                option="columns",
            )
        )
    column = next((key for key in finder.seen if plain_name(key) in PASSAGE_COLUMNS), None)
    if column is None:
        return error.copy(remedy=Hint(REPEATS, REPEATS, f"{REPEATS}; skip_bad_lines=True keeps the first"))
    advice = "write a row for each question with a list of passages"
    return error.copy(remedy=f"if {column!r} is of one passage in each row, {advice}")
