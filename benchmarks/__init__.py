"""Programs that measure parablock, and the data they measure it on."""
