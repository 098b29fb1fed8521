"""Receipts of deletions: signed, chained, without words."""
