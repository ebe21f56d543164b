"""What a person wrote, resolved."""
