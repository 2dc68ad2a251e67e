"""Bundles: exports of several runs in one file, with everything needed to check them."""
