"""Other tools' files: InfraGraph, FlexNet, Perfetto, and their YAML."""
