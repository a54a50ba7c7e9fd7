"""Charts: colours, names beside axes, and files drawn without a browser."""
