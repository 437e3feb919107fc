"""Compiled inner loops: passes over the graph, schedule generation, edge colouring. Arrays in, arrays out."""
