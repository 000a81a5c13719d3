"""The tables that are asked about, as an app that every contestant's project has: music, and a million sales."""
