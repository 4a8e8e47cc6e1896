"""The jobs: what a command does, apart from its options and its printing."""
