// Package engine runs tools. It is the last stage before a result is wrapped: the
// calls that reach it have passed every check, and it does not validate arguments
// again.
//
// A call is run by the type of its tool:
//
//	demo      a built-in tool (web.search, files.read, time.now, math.evaluate), by
//	          engine/demo; any other name returns {"echo": <the arguments>}
//	http      one HTTP request, by engine/httptool
//	oxp       a call of the Open eXecution Protocol, by engine/oxp
//	callback  a request whose answer comes later, by engine/callback
//	acp       a request to the client of an ACP session, by engine/acp
//	client    tool_unavailable: the application runs it, not the gateway
//
// Other types are those of Options.Transports, such as mcp, which engine/mcp runs. Any
// other type, and a nil engine, is tool_unavailable.
//
// Addresses, retries and the meaning of failures are the same for all transports: see
// outbound.
package engine
