"""Makers of graded tasks, tens of fine skills: fine, since coarse cards cannot tell workers apart."""
