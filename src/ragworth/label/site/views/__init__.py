"""The pages of the site, one file per subject."""
