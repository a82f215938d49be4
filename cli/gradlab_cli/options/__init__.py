"""The options of all commands, each written once, a module for each subject.

A default of None leaves the choice to the library or to the file; ``show_default`` names it.
"""
