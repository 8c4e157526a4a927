"""Pure functions from data to plotly figures, one file a topic."""
