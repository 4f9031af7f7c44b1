"""A report of a store: what its tiers have, what crossed the wire for them, as one page."""
