"""The standalone core: runs steps, keeps their records, decides what is left. Knows nothing of GitHub."""
