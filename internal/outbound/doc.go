// Package outbound is the one way by which requests to tools leave the gateway: it
// enforces the address policy, pools connections, retries, and keeps a circuit breaker
// for each tool. Every transport of the engine sends its requests by a Client.
//
// # Effects
//
// read and idempotent calls are tried at most three times within the tool's timeout,
// with exponential backoff and jitter, or after the time of a short Retry-After. A once
// call, and a call of unknown effect, is written once. If it fails after a byte of it may
// have left, it may have been carried out: outcome_unknown.
//
// # Connections
//
// A connection of HTTP/1.1 is owned by one call at a time, which writes its request and
// reads the response; nothing reads from an idle connection. It is kept if the response
// was of HTTP/1.1, did not end it, and was read to its end. Before a request is written to
// it, a read that does not wait must find the connection open and without a byte that
// nobody asked for; and for a once call it must have been idle for less than a second,
// since a server that closes it at that moment would leave the outcome unknown. If a write
// fails and the socket took no byte, the request is written to another connection. So
// a request is sent twice by nobody but the retries above.
//
// Once calls over TLS use HTTP/1.1 where the server agrees on it. Other calls to a server of
// HTTP/2, bodies of more than 32 KiB, and once calls to a server of HTTP/2 alone are sent
// by net/http: the latter each on a connection of their own, since a stream that a server
// refuses, or that it leaves out by GOAWAY, may be repeated by net/http, and whether it was
// carried out is only the server's word.
//
// # Responses
//
//	2xx                     the result, if its form and size are within bounds
//	3xx                     tool_failed; redirects are not followed
//	502, 503, 504           tool_unavailable; outcome_unknown for once, since a proxy
//	                        also sends these for requests that it passed on
//	every other status      tool_failed: the tool was reached and said no
//	no response in time     tool_timeout; outcome_unknown for once if dispatched
//	no connection           tool_unavailable
//	broken off, not HTTP    tool_unavailable; outcome_unknown for once
//
// 408, 425, 429, 500, 502, 503, 504 and broken connections are retried; the last
// failure is the one reported. The body of a response other than 2xx is never read: it
// may hold the tool's secrets, or text meant to steer a model.
//
// A result is JSON by its content type (application/json, text/json, +json), which is
// passed on unparsed, or UTF-8 text (text/*, or no content type). It may be compressed
// once, by gzip or deflate. Anything else is invalid_result. A result of more than
// max_result_bytes after decompression is result_too_large.
//
// # Breakers
//
// A breaker belongs to one tool: its name, version, URL and addresses. It opens after
// ten attempts in a row that could not connect, got no response in time, broke off, or
// got a 5xx. While it is open nothing is sent, and calls of any effect are
// tool_unavailable at once, because it is known that nothing was done. Two seconds
// later one attempt is let through: if it gets a response, the breaker closes; if not,
// it stays open for two seconds more. Any other response counts as healthy. A blocked
// address, a canceled call, and a shortage on this host (descriptors, ports, memory)
// count neither way. The result of a call that was sent does not depend on its breaker.
// Breakers live in this process, and survive reloads of the configuration.
//
// # Addresses
//
// An address is checked as the connection is made, on the address that is connected
// to, so that a name cannot resolve to one address for the check and another for the
// connection. If the tool lists addresses, only those are allowed. Otherwise only
// public ones are: no special-purpose block of IANA, and no address of this host's
// interfaces. A host in a legacy spelling of an IPv4 address (127.1, 0x7f000001) is
// blocked without resolving it. The port is the one of the operator's URL; neither a
// tool nor a name server can change it, so ports are not restricted further.
//
// Requests use no proxy and keep no cookies. Connections are shared only between calls of
// the same origin and the same allowed addresses.
package outbound
