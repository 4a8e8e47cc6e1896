"""Findings to GitHub issues and pull request comments."""
