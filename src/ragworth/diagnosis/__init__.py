"""Why a context did not do what it should: what is known of each, and the findings that follow from it."""

from ragworth.diagnosis.context_facts import ETA as ETA
from ragworth.diagnosis.context_facts import KINDS as KINDS
from ragworth.diagnosis.context_facts import Facts as Facts
from ragworth.diagnosis.context_facts import facts as facts
from ragworth.diagnosis.context_facts import grade_of as grade_of
from ragworth.diagnosis.context_facts import kind_of as kind_of
from ragworth.diagnosis.context_facts import queries_of as queries_of
from ragworth.diagnosis.context_facts import why_ungraded as why_ungraded
from ragworth.diagnosis.rules import FINDINGS as FINDINGS
from ragworth.diagnosis.rules import Diagnosis as Diagnosis
from ragworth.diagnosis.rules import Examiner as Examiner
from ragworth.diagnosis.rules import diagnose as diagnose
