"""The console in Chromium; begin with `pages`."""
