"""Porcupine and our checker judge the same histories."""
