"""Do metrics predict outcomes? Analyses of scores beside outcomes, for studies."""
