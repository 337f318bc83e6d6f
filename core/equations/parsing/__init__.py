"""Parsing the mathematics of a text: tokens, units, expression trees and their exact values.

Start with `tokens.read_tokens`, whose tokens `parser.Reader` parses.
"""
