"""CRUX collections: report requests with sub-questions, from documents and a summary of them.

Paper: Ju, Verberne, de Rijke and Yates, Controlled Retrieval-augmented Context Evaluation for Long-form RAG (CRUX).
"""
