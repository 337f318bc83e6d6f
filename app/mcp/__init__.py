"""The server of the Model Context Protocol: `protocol` answers messages, `tools` has what a client may call."""
