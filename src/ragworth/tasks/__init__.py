"""What annotators and graders have in common: texts by id, labels, settings, and rows with a value or a reason."""
