"""The labelling site: a Django project without a settings file of its own. `opening.open_site` configures it."""
