"""Known failures: a catalogue (data, one TOML file for each family) and the matcher: for crash, build and doctor."""
