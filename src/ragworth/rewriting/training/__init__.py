"""Training of a rewriter: an SFT warm-up, then DPO, with a LoRA adapter (TRL and PEFT, the extra ``train``)."""
