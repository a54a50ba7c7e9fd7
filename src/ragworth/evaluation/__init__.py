"""The main job: load → retrieve → annotate → answer → grade → score → report, from one file."""
