"""Why a context did not do what it should: what is known of each, and the findings that follow from it."""

from ragworth.diagnosis.facts import ETA as ETA
from ragworth.diagnosis.facts import KINDS as KINDS
from ragworth.diagnosis.facts import Facts as Facts
from ragworth.diagnosis.facts import facts as facts
from ragworth.diagnosis.facts import grade_of as grade_of
from ragworth.diagnosis.facts import kind_of as kind_of
from ragworth.diagnosis.facts import queries_of as queries_of
from ragworth.diagnosis.facts import why_ungraded as why_ungraded
from ragworth.diagnosis.findings import FINDINGS as FINDINGS
from ragworth.diagnosis.findings import Diagnosis as Diagnosis
from ragworth.diagnosis.findings import Examiner as Examiner
from ragworth.diagnosis.findings import diagnose as diagnose
