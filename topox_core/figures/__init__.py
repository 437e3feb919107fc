"""Results to Plotly figures; no state, no solving."""
