"""Looks into archives that a store holds, without rebuilding them."""
