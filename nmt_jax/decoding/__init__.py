"""Searches over one step closure and one cache; no model class is known here."""
