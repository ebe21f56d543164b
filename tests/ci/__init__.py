"""Tests of the files below .ci."""
