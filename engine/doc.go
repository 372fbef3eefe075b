// Package engine runs tools. It is the last stage before a result is wrapped:
// what reaches it has been judged, and nothing here judges arguments again.
//
// A call is run by the type of its tool:
//
//	demo    a built-in tool (web.search, files.read, time.now, math.evaluate);
//	        any other name returns {"echo": <the arguments>} and changes nothing
//	http    one POST of the argument bytes, as application/json, to the URL; or,
//	        where the tool states a method, a request of that method in which
//	        each argument has its place
//	client  tool_unavailable: the application runs it, not the gateway
//	oxp     one POST to a server of the Open eXecution Protocol, of one exact version
//
// Other types are those of Options.Transports, such as mcp, which engine/mcp runs.
// Anything else, and a nil engine, is tool_unavailable.
//
// # Requests with places
//
// A value stands in a path or a query with everything escaped but the unreserved
// characters of RFC 3986, so that the number of segments and the members of the query
// are the template's. A path takes no empty value, no control characters, and no .
// or .. between slashes or backslashes, escaped or not. A header takes visible ASCII,
// and spaces and tabs inside. Numbers are sent as they were written, lists in a query
// as one member for each item or joined by commas, null as nothing, and a body byte by
// byte. What does not fit is tool_failed, and nothing was sent. An argument without a
// place, or a place without an argument in braces, is tool_unavailable.
//
// # Effects
//
// read and idempotent calls are tried at most three times within the tool's one
// timeout, with exponential backoff and jitter, or after the time that a short
// Retry-After names. A once call, and one whose effect is unknown here, is
// written to one fresh connection once. Where such a call fails after its
// connection stood, it may have been carried out: outcome_unknown.
//
// # What an answer means
//
//	2xx                     the result, if its form and size are within bounds
//	3xx                     tool_failed; no redirect is followed
//	502, 503, 504           tool_unavailable; outcome_unknown for once, since a
//	                        proxy says this of requests that it passed on, too
//	every other status      tool_failed: the tool was reached and said no
//	no answer in time       tool_timeout; outcome_unknown for once if dispatched
//	no connection           tool_unavailable
//	broken off, not HTTP    tool_unavailable; outcome_unknown for once
//
// 408, 425, 429, 500, 502, 503, 504 and broken connections are tried again; the
// last fault is the one reported. The body of an answer other than 2xx is never
// read: it may hold secrets of the tool's own, or words meant to steer a model.
//
// A result is JSON by its content type (application/json, text/json, +json),
// passed on unchecked, or UTF-8 text (text/*, or no content type at all). It may
// be compressed once, by gzip or deflate. Everything else is invalid_result.
// More than the tool's max_result_bytes, counted after decoding, is
// result_too_large.
//
// # Breakers
//
// Each tool (name, version, URL and addresses) that is run by http has a circuit
// breaker. It opens after ten attempts in a row that could not connect, were not
// answered in time, broke off, or were answered with 5xx. While it is open nothing
// is sent, and calls are tool_unavailable at once, whatever their effect: that
// nothing was done is known. Two seconds later one attempt is let through: if it
// is answered, the breaker closes; if not, it stays open for two seconds more.
// Every other answer tells that the tool's server is well. An address that is
// blocked, a call that is stopped, and a lack of this host's own (descriptors,
// ports, memory) tell nothing of it. A call that was sent ends as its own attempt
// says, whatever its breaker does meanwhile. The state is kept as long as the
// tool is run in the same place, across reloads; it is this process's own.
//
// # Where requests may go
//
// Addresses are checked as the connection is made, on the address that is
// connected to, so no name can resolve to one thing for the check and to
// another for the connection. Where the tool lists addresses, only those are
// allowed. Where it lists none, only public ones are: no special-purpose block
// of IANA, no address of this host's own interfaces. A host in one of the old
// spellings of an IPv4 address (127.1, 0x7f000001) is blocked unresolved. The
// port is the one of the operator's URL: nothing that a tool or a name server
// says can change it, so ports are not restricted further.
//
// Requests use no proxy, keep no cookies and carry only Content-Type, Accept,
// Accept-Encoding, User-Agent, Callgate-Call-Id, for idempotent tools
// Idempotency-Key, Authorization where the tool has a credential, and the headers
// that the tool's parameters name. A request of the effect once, and one without a
// body whose method has one, is sent on a connection of its own and never repeated by
// the transport. Connections are shared only between calls of the same
// origin and the same allowed addresses.
package engine
