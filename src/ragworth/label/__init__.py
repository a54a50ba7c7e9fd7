"""Labelling by people: tasks, items, labels, agreement, import and export. The web site is in `ragworth.label.site`."""
