"""Groups with a past: two years of talk, the same for the same seed.

It lives beside the world and not in the lab, because the page of an installed sandbox offers such a
group too. Nothing of it is loaded before somebody asks.
"""
