"""Building test collections: questions for your own documents, checks of any collection, cards.

A model's (or a rule's) proposals are drafts. A draft is never deleted: a check that it fails gives it a status and a
reason, and the funnel counts them all.
"""
