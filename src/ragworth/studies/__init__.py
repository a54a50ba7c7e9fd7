"""Studies: does a metric predict what the model makes of a context?

Each study makes contexts on purpose, has them judged, answered and graded as an evaluation would (or takes tables that
are there), and says what came out, with intervals, tests and figures:

>>> import ragworth
>>> found = ragworth.study("alignment", ["examples/demo"])                              # doctest: +SKIP
>>> print(found.findings.sentences[0])                                                  # doctest: +SKIP

A study is one file and one line in :data:`STUDIES`; other packages add theirs through entry points of the group
``ragworth.studies``.
"""

from __future__ import annotations

from ragworth.core.registry import Registry
from ragworth.studies.contract import Study

STUDIES: Registry[type[Study]] = Registry(
    "study",
    "ragworth.studies",
    {
        "alignment": "ragworth.studies.alignment:Alignment",
        "ideal": "ragworth.studies.ideal:IdealStudy",
        "distractors": "ragworth.studies.distractors:Distractors",
        "position": "ragworth.studies.position:Position",
        "context-size": "ragworth.studies.context_size:ContextSize",
        "propagation": "ragworth.studies.propagation:Propagation",
        "win-rate": "ragworth.studies.win_rate:WinRate",
        "noise": "ragworth.studies.noise:Noise",
        "layouts": "ragworth.studies.layouts:Layouts",
        "top-k": "ragworth.studies.top_k:TopK",
        "long-form": "ragworth.studies.long_form:LongForm",
        "judges": "ragworth.studies.judges:Judges",
        "company": "ragworth.studies.company:Company",
    },
)
