"""The science of TOPO-X Workbench: task graphs, clusters, schedules, checks.

Nothing in this package imports streamlit; pages and the command line both call it.
"""

__version__ = "0.1.0"
