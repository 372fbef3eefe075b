// Package capture is a recording proxy between an application and its model provider, for imports only: it
// passes everything on, and judges nothing.
//
// Requests and answers pass as they come, streams piece by piece. Of requests to the paths of chat completions,
// Messages and Responses the tools are recorded, each definition once, in one file for each API that
// callgate tools import reads:
//
//	openai.json, anthropic.json, responses.json    {"tools":[…]}
//	NAME.conflicts.json                            further definitions of names that the first file has
//	bodies/0001-NAME.json                          whole bodies, where that is asked for
//
// Headers and query strings are never recorded. Of tools of type mcp only what names them is, since they hold
// credentials, and mcp_servers is left out of bodies. Data that holds a credential of the request's headers is
// not recorded at all.
//
// Memory, files and concurrent requests are bounded. Traffic beyond a bound passes unrecorded, and a line says so.
package capture
