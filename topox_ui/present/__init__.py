"""The lecturer's page: the projector view of a lab, the answers of the class, statistics, leaderboards."""
