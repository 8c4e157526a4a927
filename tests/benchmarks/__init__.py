"""Measurements of speed, each a ratio against a stated baseline in the same run (`make bench`)."""
