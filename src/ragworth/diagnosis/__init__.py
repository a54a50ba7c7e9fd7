"""Why a context did not do what it should: what is known of each, and the findings that follow from it."""

from ragworth.diagnosis.context_facts import ETA as ETA
from ragworth.diagnosis.context_facts import PASSAGE_KINDS as PASSAGE_KINDS
from ragworth.diagnosis.context_facts import ContextFacts as ContextFacts
from ragworth.diagnosis.context_facts import all_queries as all_queries
from ragworth.diagnosis.context_facts import gather_facts as gather_facts
from ragworth.diagnosis.context_facts import nearest_grade as nearest_grade
from ragworth.diagnosis.context_facts import passage_kind as passage_kind
from ragworth.diagnosis.rules import FINDINGS as FINDINGS
from ragworth.diagnosis.rules import Diagnosis as Diagnosis
from ragworth.diagnosis.rules import diagnose as diagnose
