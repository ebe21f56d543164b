"""Archives and the places that keep them."""
