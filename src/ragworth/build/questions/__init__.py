"""Questions for your own documents: a plan of strata, two writers (rules or a model), and the build itself."""
