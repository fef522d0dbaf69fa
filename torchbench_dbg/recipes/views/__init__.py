"""What a person sees of recipes and of their transcripts."""
