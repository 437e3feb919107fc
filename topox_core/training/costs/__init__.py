"""What a layer, its passes, collectives and memory take."""
