"""The server of the Model Context Protocol: `protocol` answers messages, `tools` has the tools that a client may
call."""
