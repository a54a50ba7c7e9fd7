"""Migrations of the site's database."""
