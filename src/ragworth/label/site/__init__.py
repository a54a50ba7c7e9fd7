"""The labelling site: a Django project without a settings file of its own. `startup.open_site` configures it."""
