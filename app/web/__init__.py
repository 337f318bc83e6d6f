"""What every page and route rests on: escaping, the frame, files, who may ask for what, and failures."""
