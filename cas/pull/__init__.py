"""Pulling tiers from a source into a store."""
