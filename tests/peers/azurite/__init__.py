"""Azurite, the emulator of Azure's blob store, and the signed URLs that open what is in it."""
